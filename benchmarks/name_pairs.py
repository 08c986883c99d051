"""Names that are words: a part of ``make bench-quality``.

The texts of ``benchmarks/names/pairs.ndjson`` are one index: of each pair, one text uses a common word as a word, the
other one as a name. The trust in its graph is not measured, as before ``trivium tidy``: the graph has its full weight,
as in a corpus with a good graph. Prints for each run how many of the queries for the word, and of those for the name,
have their own text before the other text of the pair, and first of all; then each query whose own text is not before
the other one under some run, with the ranks of both texts.

The questions of ``benchmarks/names/questions.ndjson`` search the documentation of Python's standard library, indexed
and optimised as by ``trivium demo``. Prints nDCG@10 of each run.

The exit code is 1 if a claim is false: the share of pairs with both queries right under the default profile and under
both profiles of RRF, and nDCG@10 of hybrid search beside that of vector and keyword.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias, get_args

import anyio
import msgspec
from rich.table import Table

from adapters import Document
from adapters.model.sources import SOURCES
from benchmarks.claims import out, report
from benchmarks.corpus import index_documents
from orchestrator.bootstrap import open_service
from orchestrator.cli.demo.steps import index_documentation
from orchestrator.evaluation import judged_runs, measures
from orchestrator.evaluation.judgments import JudgedQueries
from orchestrator.evaluation.measures import MAIN_MEASURE
from orchestrator.evaluation.runs import REFERENCE_RUN, RUNS, TEXT_RUN, make_request
from orchestrator.evaluation.searched_index import QueryResult, Results, ServiceIndex, ranked, require_complete
from orchestrator.service.service import Service
from orchestrator.settings import load

_FOLDER = Path(__file__).parent / "names"
_DEPTH = 10
_PROFILE_RUNS = (REFERENCE_RUN, "profile/rrf", "profile/weighted_rrf")
_PAIR_RUNS = (*_PROFILE_RUNS, TEXT_RUN)
_QUESTION_RUNS = (*_PAIR_RUNS, *(source.name for source in SOURCES if source.role == "text"))
_MIN_SHARE = 0.95
"""The share of pairs with both queries right, under each profile."""

_Use: TypeAlias = Literal["word", "name"]


class _Example(msgspec.Struct, frozen=True):
    text: str
    query: str


class _Pair(msgspec.Struct, frozen=True):
    word: str
    as_word: _Example
    as_name: _Example

    def example(self, use: _Use) -> _Example:
        return self.as_word if use == "word" else self.as_name

    def id(self, use: _Use) -> str:
        return f"{self.word}/{use}"


class _Question(msgspec.Struct, frozen=True):
    query: str
    relevant: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Found:
    """The ranks of both texts of a pair, from 1; ``None`` if a text is not among the first ten."""

    own: int | None
    other: int | None

    @property
    def is_before(self) -> bool:
        return self.own is not None and (self.other is None or self.own < self.other)

    @property
    def is_first(self) -> bool:
        return self.own == 1

    def __str__(self) -> str:
        return f"{self.own or '-'}, {self.other or '-'}"


_FoundByRun: TypeAlias = Mapping[str, Mapping[tuple[str, _Use], _Found]]
"""By run, word and use."""


def main() -> None:
    """Print the tables, and check the claims."""
    pairs = msgspec.json.Decoder(_Pair).decode_lines((_FOLDER / "pairs.ndjson").read_bytes())
    questions = msgspec.json.Decoder(_Question).decode_lines((_FOLDER / "questions.ndjson").read_bytes())
    found = _found(pairs, anyio.run(_results_of_pairs, pairs))
    _print_pairs(pairs, found)
    claims = []
    for run in _PROFILE_RUNS:
        right = _right_both_ways(pairs, found, run)
        claims.append(
            report(
                right >= _MIN_SHARE * len(pairs),
                f"{run}: at least {_MIN_SHARE:.0%} of the pairs have both queries right",
                f"{right} of {len(pairs)}",
            )
        )
    values = _measured(questions, anyio.run(_results_of_questions, questions))
    table = Table(title=f"{len(questions)} questions", title_justify="left")
    table.add_column("run")
    table.add_column(MAIN_MEASURE, justify="right")
    for run, value in values.items():
        table.add_row(run, f"{value:.4f}")
    out.print(table)
    claims.append(
        report(
            values[REFERENCE_RUN] >= values[TEXT_RUN],
            f"the questions: {MAIN_MEASURE} of {REFERENCE_RUN} is at least that of {TEXT_RUN}",
            f"{values[REFERENCE_RUN]:.4f} and {values[TEXT_RUN]:.4f}",
        )
    )
    raise SystemExit(0 if all(claims) else 1)


async def _results_of_pairs(pairs: Sequence[_Pair]) -> Results:
    documents = [Document(id=pair.id(use), text=pair.example(use).text) for pair, use in _examples(pairs)]
    queries = {pair.id(use): pair.example(use).query for pair, use in _examples(pairs)}

    async def index(service: Service) -> None:
        await index_documents(service, documents)

    return await _search_all(index, queries, _PAIR_RUNS)


async def _results_of_questions(questions: Sequence[_Question]) -> Results:
    async def index(service: Service) -> None:
        await index_documentation(service, out)
        await service.maintenance.optimize(lambda _: None)
        judged = {id_ for each in questions for id_ in each.relevant}
        present = await ServiceIndex(service, service.anonymous).titles(judged)
        if missing := sorted(judged - present.keys()):
            out.print(f"judged, but not in the documentation of this Python: {', '.join(missing)}")

    return await _search_all(index, {each.query: each.query for each in questions}, _QUESTION_RUNS)


async def _search_all(
    index: Callable[[Service], Awaitable[None]], queries: Mapping[str, str], runs: Sequence[str]
) -> Results:
    """The first ten hits of each query under each run, in a new index with default settings."""
    with TemporaryDirectory() as folder:
        async with open_service(load(data_dir=Path(folder), source_timeout_ms=60_000)) as service:
            await index(service)
            return {run: {id_: await _search(service, run, id_, text) for id_, text in queries.items()} for run in runs}


async def _search(service: Service, run: str, id_: str, text: str) -> QueryResult:
    request = make_request(text, {**RUNS[run].fields, "limit": _DEPTH})
    response = require_complete(await service.search.search(request, service.anonymous, run), f"{run}, {text!r}")
    return QueryResult(run, id_, ranked(response.hits), response.route.sources)


def _examples(pairs: Sequence[_Pair]) -> Iterator[tuple[_Pair, _Use]]:
    return ((pair, use) for pair in pairs for use in get_args(_Use))


def _found(pairs: Sequence[_Pair], results: Results) -> _FoundByRun:
    found: dict[str, dict[tuple[str, _Use], _Found]] = {run: {} for run in results}
    for run, by_query in results.items():
        for pair, use in _examples(pairs):
            ranks = {hit.id: rank for rank, hit in enumerate(by_query[pair.id(use)].hits, start=1)}
            other: _Use = "name" if use == "word" else "word"
            found[run][pair.word, use] = _Found(ranks.get(pair.id(use)), ranks.get(pair.id(other)))
    return found


def _right_both_ways(pairs: Sequence[_Pair], found: _FoundByRun, run: str) -> int:
    return sum(all(found[run][pair.word, use].is_before for use in get_args(_Use)) for pair in pairs)


def _print_pairs(pairs: Sequence[_Pair], found: _FoundByRun) -> None:
    table = Table(title=f"{len(pairs)} pairs: queries with their own text", title_justify="left")
    uses: tuple[_Use, ...] = get_args(_Use)
    columns = [f"{use}: {where}" for use in uses for where in ("before the other text", "first")]
    for column in ("run", *columns, "pairs right both ways"):
        table.add_column(column, justify="left" if column == "run" else "right")
    for run in found:
        counts = []
        for use in uses:
            of_use = [found[run][pair.word, use] for pair in pairs]
            counts += [sum(each.is_before for each in of_use), sum(each.is_first for each in of_use)]
        table.add_row(run, *map(str, counts), str(_right_both_ways(pairs, found, run)))
    out.print(table)
    wrong = Table(title="not before the other text: ranks of their own text, the other text", title_justify="left")
    for column in ("use", "query", *found):
        wrong.add_column(column, no_wrap=True)
    for use in uses:
        for pair in pairs:
            by_run = [found[run][pair.word, use] for run in found]
            if not all(each.is_before for each in by_run):
                cells = (str(each) if each.is_before else f"[red]{each}[/red]" for each in by_run)
                wrong.add_row(pair.id(use), pair.example(use).query, *cells)
    if wrong.row_count:
        out.print(wrong)


def _measured(questions: Sequence[_Question], results: Results) -> dict[str, float]:
    judged = JudgedQueries(
        "standard library",
        {each.query: each.query for each in questions},
        {each.query: each.relevant for each in questions},
        (),
    )
    by_run = judged_runs.measure_runs(judged_runs.as_runs(results, judged), judged)
    return {run: measures.mean(values[MAIN_MEASURE]) for run, values in by_run.items()}


if __name__ == "__main__":
    main()
