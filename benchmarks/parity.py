"""``make bench-parity``: how far embedded mode and server mode return the same results."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import anyio
from msgspec.structs import replace
from rich.console import Console

from adapters.model.sources import SOURCES
from benchmarks.beir_folder import index_folder, read_queries
from benchmarks.servers import server_settings
from orchestrator.bootstrap import open_service
from orchestrator.schema.search import Like, SearchRequest, SearchResponse
from orchestrator.settings import Settings, load

_console = Console()
_COMPARED_HITS = 10
_SOURCES = tuple(source.name for source in SOURCES)


def main() -> None:
    """Index a BEIR folder twice, and run all its queries twice."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a BEIR folder with its graph files")
    parser.add_argument("--queries", type=int, help="maximum number of queries; default: all")
    parser.add_argument("--like", action="store_true", help="search for documents like as many others instead")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    queries = read_queries(folder)[: arguments.queries]
    with tempfile.TemporaryDirectory() as work, server_settings(Path(work, "servers")) as on_servers:
        embedded = load(data_dir=Path(work, "embedded"), source_timeout_ms=10_000, query_encoder="model")
        embedded_responses = anyio.run(_search, embedded, folder, queries, arguments.like)
        server_responses = anyio.run(_search, on_servers, folder, queries, arguments.like)
    pairs = list(zip(embedded_responses, server_responses, strict=True))
    overlap = _mean([_overlap(_hit_ids(a), _hit_ids(b)) for a, b in pairs])
    _console.print(f"{len(queries)} queries, overlap of the top {_COMPARED_HITS} of the fused ranking: {overlap:.3f}")
    for source in _SOURCES:
        overlaps = [_overlap(_ranking_ids(a, source), _ranking_ids(b, source)) for a, b in pairs]
        _console.print(
            f"  {source}: overlap of the top {_COMPARED_HITS}: {_mean(overlaps):.3f}, complete for "
            f"{overlaps.count(1.0)} queries"
        )
    causes: Counter[str] = Counter()
    for a, b in pairs:
        if set(_hit_ids(a)) != set(_hit_ids(b)):
            different = [source for source in _SOURCES if _ranking_ids(a, source) != _ranking_ids(b, source)]
            causes[", ".join(different) or "order of ties"] += 1
    _console.print(f"  fused rankings with different documents, by the sources that differ: {dict(causes)}")


async def _search(settings: Settings, folder: Path, queries: Sequence[str], is_like: bool) -> list[SearchResponse]:
    async with open_service(settings) as service:
        await index_folder(service, folder)
        await service.maintenance.optimize(lambda _: None)
        requests = [SearchRequest(query=query, mode="hybrid", timeout_ms=60_000, explain=True) for query in queries]
        if is_like:
            ids = [document.id async for document in service.documents.all(service.anonymous)]
            examples = ids[:: max(len(ids) // len(queries), 1)][: len(queries)]
            requests = [
                replace(request, query="", like=Like((id_,))) for request, id_ in zip(requests, examples, strict=True)
            ]
        responses = [await service.search.search(request, service.anonymous, "parity") for request in requests]
    if degraded := [response.degraded for response in responses if response.degraded]:
        raise SystemExit(f"{len(degraded)} responses are degraded, the first: {degraded[0]}")
    return responses


def _hit_ids(response: SearchResponse) -> list[str]:
    return [hit.id for hit in response.hits]


def _ranking_ids(response: SearchResponse, source: str) -> list[str]:
    return [hit.id for hit in response.explain.rankings[source]][:_COMPARED_HITS] if response.explain else []


def _overlap(one: list[str], other: list[str]) -> float:
    return len(set(one) & set(other)) / max(len(one), len(other), 1)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
