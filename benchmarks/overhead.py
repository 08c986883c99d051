"""``make bench-overhead``: the time that an adapter adds to the calls of the bare driver, on the same server.

A query is searched once through the adapter while the calls of the driver are recorded. Then the adapter and the
recorded calls alone are timed alternately. The medians of the ratios and of both times are printed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from unittest import mock

import anyio
import neo4j
from msgspec.structs import replace
from rich.console import Console

from adapters.model.sources import GRAPH, KEYWORD, VECTOR
from adapters.ports import SourceQuery
from benchmarks.beir_folder import index_folder, read_queries
from benchmarks.servers import server_settings
from fusion.columns import Documents
from orchestrator.auth.visibility import access_filter
from orchestrator.bootstrap import open_service
from orchestrator.service.service import Service
from orchestrator.settings import Settings

_console = Console()
_MAX_RATIO = 1.15
_REPETITIONS = 5
_SEEDS = 50


def main() -> None:
    """Index a BEIR folder on the servers and search for its queries."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a BEIR folder with its graph files")
    parser.add_argument("--queries", type=int, default=50, help="maximum number of queries")
    arguments = parser.parse_args()
    queries = read_queries(arguments.folder)[: arguments.queries]
    with tempfile.TemporaryDirectory() as work, server_settings(Path(work)) as settings:
        worst = anyio.run(_measure, settings, arguments.folder, queries)
    raise SystemExit(0 if worst <= _MAX_RATIO else 1)


async def _measure(settings: Settings, folder: Path, queries: Sequence[str]) -> float:
    async with open_service(settings) as service:
        await index_folder(service, folder)
        worst = 0.0
        for source in service.health.servers:
            ratio, adapter_ms, driver_ms = await _compare(service, source, queries)
            worst = max(worst, ratio)
            _console.print(f"{source}: adapter {adapter_ms:.2f} ms, driver alone {driver_ms:.2f} ms, ratio {ratio:.3f}")
    return worst


async def _compare(service: Service, source: str, queries: Sequence[str]) -> tuple[float, float, float]:
    """The medians of the ratio, of the adapter's time and of the driver's, in ms."""
    adapter: Any = service.health.servers[source]
    ratios, adapter_times, driver_times = [], [], []
    for text in queries:
        query = await _source_query(service, source, text)
        driver_alone = await _recorded_calls(adapter, source, query)
        for _ in range(_REPETITIONS):
            adapter_s, driver_s = await _timed(partial(adapter.search, query)), await _timed(driver_alone)
            ratios.append(adapter_s / driver_s)
            adapter_times.append(adapter_s)
            driver_times.append(driver_s)
    return median(ratios), 1_000 * median(adapter_times), 1_000 * median(driver_times)


async def _source_query(service: Service, source: str, text: str) -> SourceQuery:
    """The query of a hybrid search."""
    scope = service.anonymous.scope
    visible = access_filter(scope, service.anonymous.viewer)
    query = SourceQuery(text, service.settings.sources.candidates, scope, visible, visible)
    if source == VECTOR.name:
        encoded = await service.search.retrieval.preparation.encoders.encode(text, "model", scope.tenant)
        return replace(query, vector=encoded.vector)
    if source == GRAPH.name:
        keyword = await service.health.servers[KEYWORD.name].search(query)
        return replace(query, seeds=Documents(keyword.docs[:_SEEDS], keyword.table))
    return query


async def _recorded_calls(adapter: Any, source: str, query: SourceQuery) -> Callable[[], Awaitable[Any]]:
    """Search once; returns a function that makes the same calls by the driver alone."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    if source == GRAPH.name:
        target, name = adapter._bolt, "read"
    else:
        target, name = adapter._client, "query_batch_points" if source == VECTOR.name else "msearch"
    call = getattr(target, name)

    async def recorded(*args: Any, **kwargs: Any) -> Any:
        calls.append((args, kwargs))
        return await call(*args, **kwargs)

    with mock.patch.object(target, name, recorded):
        await adapter.search(query)

    if source == GRAPH.name:
        return lambda: _run_statements(adapter._bolt._driver, [args for args, _ in calls])

    async def driver_alone() -> None:
        for args, kwargs in calls:
            await call(*args, **kwargs)

    return driver_alone


async def _run_statements(driver: neo4j.AsyncDriver, statements: Sequence[tuple[Any, ...]]) -> None:
    for text, parameters, *_ in statements:
        async with driver.session(default_access_mode=neo4j.READ_ACCESS) as session:
            _ = [record async for record in await session.run(text, parameters)]


async def _timed(call: Callable[[], Awaitable[Any]]) -> float:
    start = perf_counter()
    await call()
    return perf_counter() - start


if __name__ == "__main__":
    main()
