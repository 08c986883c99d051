"""Runs every query of every run through the service: in shards, in parallel, resumable.

A shard is every n-th query. Shards run in processes of one machine or in pods of a job: they share only the folder.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from queue import Queue

import anyio
import msgspec

from adapters.storage import files
from orchestrator.evaluation.searched_index import IncompleteRun, QueryResult, Results, ServiceIndex
from orchestrator.evaluation.workspace import OpenService, ResultStore, Workspace


async def run_shard(
    open_service: OpenService,
    workspace: Workspace,
    results: ResultStore,
    shard: int,
    shards: int,
    advance: Callable[[int], None],
) -> None:
    """Run the queries of one shard that have no result yet; each result is on disk before the next query runs.

    Queries run one at a time, so that a result does not depend on others.

    :raises IncompleteRun: if a source failed.
    """
    path = results.shard_path(shard, shards)
    with files.exclusive(path.with_suffix(".lock")):  # a second process for the same shard finds it done
        done = {(result.run, result.query) for result in results.read()}
        queries = list(workspace.dataset.queries.items())[shard::shards]
        due = [(run, id_, text) for id_, text in queries for run in workspace.runs if (run, id_) not in done]
        advance(len(queries) * len(workspace.runs) - len(due))
        if not due:
            return
        _truncate_incomplete_line(path)
        async with open_service(workspace.settings) as service:
            index = ServiceIndex(service, service.anonymous)
            with path.open("ab", buffering=0) as file:
                for run, id_, text in due:
                    result = await index.search(run, id_, text)
                    file.write(msgspec.json.encode(result) + b"\n")
                    advance(1)


def run_all(
    open_service: OpenService,
    workspace: Workspace,
    results: ResultStore,
    workers: int,
    advance: Callable[[int], None],
) -> None:
    """Run all shards, each in its own process if there are several.

    :raises IncompleteRun: as :func:`run_shard`.
    """
    if workers == 1:
        anyio.run(run_shard, open_service, workspace, results, 0, 1, advance)
        return
    # Not forked: a fork does not have the threads of the model.
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(workers, mp_context=context) as pool:
        progress = manager.Queue()
        running = [
            pool.submit(_run_in_process, open_service, workspace, results, shard, workers, progress)
            for shard in range(workers)
        ]
        for future in running:
            future.add_done_callback(lambda _: progress.put(0))
        unfinished = len(running)
        while unfinished:
            count = progress.get()
            advance(count)
            unfinished -= count == 0
        for future in as_completed(running):
            future.result()


def collect(workspace: Workspace, results: ResultStore) -> Results:
    """The results by run and query.

    :raises IncompleteRun: if a result is missing.
    """
    collected: dict[str, dict[str, QueryResult]] = {run: {} for run in workspace.runs}
    for result in results.read():
        if result.run in collected:
            collected[result.run][result.query] = result
    for run, by_query in collected.items():
        if missing := workspace.dataset.queries.keys() - by_query.keys():
            raise IncompleteRun(f"{run}: query {min(missing)!r} has no result: run the evaluation again to continue")
    return collected


def _run_in_process(
    open_service: OpenService,
    workspace: Workspace,
    results: ResultStore,
    shard: int,
    shards: int,
    progress: Queue[int],
) -> None:
    def advance(count: int) -> None:
        if count:
            progress.put(count)

    anyio.run(run_shard, open_service, workspace, results, shard, shards, advance)


def _truncate_incomplete_line(path: Path) -> None:
    """Remove an incomplete line that a crash left at the end."""
    if path.is_file():
        with path.open("r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)
