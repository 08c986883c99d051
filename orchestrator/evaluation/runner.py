"""Every query of every run through the engine: in shards, in parallel, and on from where it was interrupted.

A shard is every n-th query. The same call is one process here or one pod of a job: they share nothing but the folder.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from queue import Queue

import anyio
import msgspec

from adapters import files
from orchestrator.contract import SearchResponse
from orchestrator.evaluation.runs import RUNS, request
from orchestrator.evaluation.work import Answer, Answers, Ranked, Work
from orchestrator.plan import BadRequest
from orchestrator.wiring import Service, opened


class NotWhole(Exception):
    """What is not whole must not be measured: the message names the query and what was missing."""


async def ask_shard(work: Work, answers: Answers, shard: int, shards: int, advance: Callable[[int], None]) -> None:
    """Ask what is not answered yet of one shard; each answer is on disk before the next query is asked.

    One query at a time: what a query gets must not depend on what else is asked.

    :raises NotWhole: if a source did not do its part.
    """
    path = answers.shard(shard, shards)
    with files.exclusive(path.with_suffix(".lock")):  # who asks the same shard at the same time finds it done
        done = {(answer.run, answer.query) for answer in answers.read()}
        mine = list(work.dataset.queries.items())[shard::shards]
        due = [(run, id_, text) for id_, text in mine for run in RUNS if (run, id_) not in done]
        advance(len(mine) * len(RUNS) - len(due))
        if not due:
            return
        _end_line(path)
        async with opened(work.settings) as service:
            with path.open("ab", buffering=0) as file:
                for run, id_, text in due:
                    answered = await _ask(service, run, id_, text)
                    file.write(msgspec.json.encode(answered) + b"\n")
                    advance(1)


def ask_all(work: Work, answers: Answers, workers: int, advance: Callable[[int], None]) -> None:
    """All shards, each in a process of its own if there are several.

    :raises NotWhole: as :func:`ask_shard`.
    """
    if workers == 1:
        anyio.run(ask_shard, work, answers, 0, 1, advance)
        return
    # Not forked: the model's threads do not survive that.
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(workers, mp_context=context) as pool:
        progress = manager.Queue()
        running = [pool.submit(_shard, work, answers, shard, workers, progress) for shard in range(workers)]
        for ended in running:
            ended.add_done_callback(lambda _: progress.put(0))
        left = len(running)
        while left:
            count = progress.get()
            advance(count)
            left -= count == 0
        for ended in as_completed(running):
            ended.result()


def collect(work: Work, answers: Answers) -> Mapping[str, dict[str, Answer]]:
    """By run, by query.

    :raises NotWhole: if an answer is missing.
    """
    found: dict[str, dict[str, Answer]] = {run: {} for run in RUNS}
    for answer in answers.read():
        if answer.run in found:
            found[answer.run][answer.query] = answer
    for run, given in found.items():
        if missing := work.dataset.queries.keys() - given.keys():
            raise NotWhole(f"{run}: no answer to query {min(missing)!r}: evaluate again, it goes on where it stopped")
    return found


def whole(answer: SearchResponse, what: str) -> SearchResponse:
    """The answer, if every source did its part.

    :raises NotWhole: if one did not.
    """
    for missing in answer.degraded:
        raise NotWhole(f"{what}: {missing.source} did not do its part: {missing.reason}")
    return answer


def _shard(work: Work, answers: Answers, shard: int, shards: int, progress: Queue[int]) -> None:
    def advance(count: int) -> None:
        if count:
            progress.put(count)

    anyio.run(ask_shard, work, answers, shard, shards, advance)


async def _ask(service: Service, run: str, id_: str, text: str) -> Answer:
    try:
        answer = await service.engine.search(request(text, RUNS[run]), service.caller, f"{run}:{id_}")
    except BadRequest as error:
        raise NotWhole(f"{run}, query {id_!r}: {error}") from error
    whole(answer, f"{run}, query {id_!r}")
    return Answer(run, id_, [_ranked(answer, place) for place in range(len(answer.hits))], answer.route.sources)


def _ranked(answer: SearchResponse, place: int) -> Ranked:
    hit = answer.hits[place]
    ranks = {source: share.rank for source, share in hit.sources.items() if share is not None}
    return Ranked(hit.id, hit.score, ranks)


def _end_line(path: Path) -> None:
    """Cut off what a crash left of a line."""
    if path.is_file():
        with path.open("r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)
