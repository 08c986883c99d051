"""``make bench-graph-harm``: graphs without information, or with less, must not make hybrid search worse.

The graph of each judged data set is replaced: shuffled, one hub, a tree, none; and where it has a hierarchy, second
parents for 5, 11 and 30 % of the children, and all types of links as one, each without the names of the types. Prints
nDCG@10 of the default search against vector and keyword, paired.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from adapters import Link, Scope
from adapters.ports import VectorRecord
from adapters.ports.graph import LinkStrength
from benchmarks.corpus import embedded_engine, indexed_records
from orchestrator.bootstrap import open_service
from orchestrator.evaluation import measures
from orchestrator.evaluation.comparison import Difference, compare
from orchestrator.evaluation.dataset import read_dataset
from orchestrator.evaluation.measures import MAIN_MEASURE, ByQuery
from orchestrator.evaluation.runs import REFERENCE_RUN, RUNS, TEXT_SOURCES, make_request
from orchestrator.evaluation.workspace import Workspace
from orchestrator.service.service import Service
from orchestrator.settings import load
from orchestrator.settings.groups import Settings

_console = Console(width=140)
_TEXT = "+".join(TEXT_SOURCES)
_ALLOWED = -0.005
_CHILDREN = 5
_UNNAMED = "links"
"""A link type whose name has no known meaning."""

Records = Sequence[VectorRecord]


def main() -> None:
    """Evaluate every folder on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", help="BEIR folders with judged queries")
    parser.add_argument("--work", type=Path, default=Path("benchmarks/.data/quality"), help="folder of the indexes")
    arguments = parser.parse_args()
    table = Table(title=f"{REFERENCE_RUN} against {_TEXT}", title_justify="left")
    for column in ("set", "graph", MAIN_MEASURE, _TEXT, "difference", "p", "trust", "hierarchies"):
        table.add_column(column, no_wrap=True)
    worst = 0.0
    for folder in arguments.folders:
        workspace = Workspace.of(load(data_dir=arguments.work), read_dataset(folder))
        records = anyio.run(indexed_records, workspace)
        for name, variant in _variants(records):
            difference, trust, hierarchies = anyio.run(_measure, workspace, variant)
            relative = difference.relative or 0.0
            worst = min(worst, relative)
            table.add_row(
                folder.name, name, f"{difference.value:.4f}", f"{difference.baseline:.4f}", f"{relative:+.2%}",
                f"{difference.p:.3f}", f"{trust:.2f}", hierarchies,
            )  # fmt: skip
            _console.print(f"{folder.name}, {name}: {relative:+.2%}")
    _console.print(table)
    _console.print(f"largest loss: {worst:+.2%} (allowed: {_ALLOWED:+.1%})")
    raise SystemExit(0 if worst >= _ALLOWED else 1)


def _variants(records: Records) -> Iterator[tuple[str, Records]]:
    chance = random.Random(1)
    ids = [each.record.document.id for each in records]
    yield "none", _with_links(records, [()] * len(records), names=False)
    yield "shuffled", _shuffled(records, chance)
    yield "one hub", _with_links(records, [(Link(ids[0], _UNNAMED),) for _ in ids], names=False)
    parents = [ids[(number - 1) // _CHILDREN] for number in range(1, len(ids))]
    yield "a tree", _with_links(records, [(), *((Link(parent, _UNNAMED),) for parent in parents)], names=False)
    links = [each.record.document.links for each in records]
    if not any(link.type == "part_of" for own in links for link in own):
        return
    unnamed = [tuple(replace(link, type=f"{_UNNAMED} {link.type}") for link in own) for own in links]
    for share in (0.0, 0.05, 0.11, 0.3):
        yield f"second parents {share:.0%}", _with_links(records, _second_parents(unnamed, share, chance))
    yield "one type", _with_links(records, [tuple(replace(link, type=_UNNAMED) for link in own) for own in links])


def _second_parents(links: Sequence[tuple[Link, ...]], share: float, chance: random.Random) -> list[tuple[Link, ...]]:
    hierarchy = f"{_UNNAMED} part_of"
    parents = sorted({link.target for own in links for link in own if link.type == hierarchy})
    return [
        own + tuple(Link(chance.choice(parents), hierarchy) for link in own if link.type == hierarchy and is_chosen)
        for own in links
        for is_chosen in (chance.random() < share,)
    ]


def _with_links(records: Records, links: Sequence[tuple[Link, ...]], *, names: bool = True) -> Records:
    """The documents with other links, and without names of entities unless ``names``."""
    return [
        _with_edges(each, links=own, entities=each.record.entities if names else ())
        for each, own in zip(records, links, strict=True)
    ]


def _shuffled(records: Records, chance: random.Random) -> Records:
    """Each document has the links and the names of another one."""
    others = [each.record for each in records]
    chance.shuffle(others)
    return [
        _with_edges(each, links=other.document.links, entities=other.entities)
        for each, other in zip(records, others, strict=True)
    ]


def _with_edges(stored: VectorRecord, links: tuple[Link, ...], entities: tuple[str, ...]) -> VectorRecord:
    """The same document with other edges."""
    document = replace(stored.record.document, links=links, entities=entities)
    return VectorRecord(replace(stored.record, document=document, entities=entities), stored.vectors)


async def _measure(workspace: Workspace, records: Records) -> tuple[Difference, float, str]:
    with tempfile.TemporaryDirectory() as folder:
        settings: Settings = workspace.settings.changed(data_dir=Path(folder))
        async with open_service(settings) as service:
            await embedded_engine(service).index.write(records, ())
            await service.maintenance.optimize(lambda _: None)
            by_run = {run: await _run(service, workspace, run) for run in (REFERENCE_RUN, _TEXT)}
            scope = Scope(settings.access.tenant, settings.access.environment)
            strengths = await _strengths(service, scope)
            trust = service.maintenance.trust.weight_factor(scope, service.anonymous.clearance)
    shown = ", ".join(f"{each.forward:g}/{each.backward:g}" for each in strengths)
    return compare(REFERENCE_RUN, _TEXT, by_run[REFERENCE_RUN], by_run[_TEXT]), trust, shown


async def _run(service: Service, workspace: Workspace, run: str) -> ByQuery:
    hits = {}
    for query, text in workspace.dataset.queries.items():
        request = make_request(text, {**RUNS[run].fields, "cache": "bypass"})
        response = await service.search.search(request, service.anonymous, run)
        hits[query] = [(hit.id, -float(rank)) for rank, hit in enumerate(response.hits)]
    return measures.measure_run(workspace.dataset.judgments, hits)[MAIN_MEASURE]


async def _strengths(service: Service, scope: Scope) -> Sequence[LinkStrength]:
    reader = service.health.link_strengths
    return () if reader is None else await reader.link_strengths(scope)


if __name__ == "__main__":
    main()
