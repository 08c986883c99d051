"""``make bench-parity``: the same documents and queries in embedded and in server mode; how far the answers agree."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path

import anyio
from rich.console import Console

from benchmarks.servers import server_settings
from orchestrator.contract import SOURCES, SearchRequest, SearchResponse
from orchestrator.indexing import beir, lines
from orchestrator.settings import Settings, read
from orchestrator.wiring import opened

_console = Console()
_SHOWN = 10


def main() -> None:
    """Index a BEIR folder twice, ask all its queries twice."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path, help="a BEIR folder, with its graph files")
    folder: Path = arguments.parse_args().folder
    queries = [json.loads(line)["text"] for line in (folder / "queries.jsonl").read_text().splitlines()]
    with tempfile.TemporaryDirectory() as work, server_settings(Path(work, "servers")) as served:
        embedded = read(data_dir=Path(work, "embedded"), source_timeout_ms=10_000, query_encoder="model")
        here = anyio.run(_answers, embedded, folder, queries)
        there = anyio.run(_answers, served, folder, queries)
    overlaps = [_overlap(_ids(a), _ids(b)) for a, b in zip(here, there, strict=True)]
    _console.print(f"{len(queries)} queries, top {_SHOWN} of the fused ranking in common: {_mean(overlaps):.3f}")
    for source in SOURCES:
        same = [_overlap(_from(a, source), _from(b, source)) for a, b in zip(here, there, strict=True)]
        _console.print(
            f"  {source}: top {_SHOWN} in common {_mean(same):.3f}, all of them in {same.count(1.0)} queries"
        )
    blame: Counter[str] = Counter()
    for a, b in zip(here, there, strict=True):
        if set(_ids(a)) != set(_ids(b)):
            blame[", ".join(s for s in SOURCES if _from(a, s) != _from(b, s)) or "order of ties"] += 1
    _console.print(f"  fused rankings that differ, by the sources that do: {dict(blame)}")


async def _answers(settings: Settings, folder: Path, queries: list[str]) -> list[SearchResponse]:
    async with opened(settings) as service:
        done = await service.writer.index(lines.good(beir.read(folder), _refuse), service.caller.scope)
        if done.missing or done.refused:
            raise SystemExit(f"not everything was written: {done.missing} {done.refused}")
        asked = [SearchRequest(query=query, mode="hybrid", timeout_ms=60_000, explain=True) for query in queries]
        answers = [await service.engine.search(request, service.caller, "parity") for request in asked]
    if degraded := [answer.degraded for answer in answers if answer.degraded]:
        raise SystemExit(f"{len(degraded)} answers are degraded, the first: {degraded[0]}")
    return answers


def _refuse(bad: lines.Bad) -> None:
    raise SystemExit(f"line {bad.line}: {bad.error}")


def _ids(answer: SearchResponse) -> list[str]:
    return [hit.id for hit in answer.hits]


def _from(answer: SearchResponse, source: str) -> list[str]:
    return [hit.id for hit in answer.explain.rankings[source]][:_SHOWN] if answer.explain else []


def _overlap(one: list[str], other: list[str]) -> float:
    return len(set(one) & set(other)) / max(len(one), len(other), 1)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
