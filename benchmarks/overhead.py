"""``make bench-overhead``: what our adapters add to the bare driver's call, asked of the same server in turn.

A query goes once through the adapter, which is watched for what it sends; then the same is sent by the driver alone,
and again through the adapter, in turn. Printed is the median of the ratios, and both medians.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from unittest import mock

import anyio
import neo4j
from rich.console import Console

from adapters.filter import access, normal
from adapters.port import Query
from benchmarks.servers import server_settings
from orchestrator.indexing import beir, lines
from orchestrator.settings import Settings
from orchestrator.wiring import Service, opened

_console = Console()
_ALLOWED = 1.15
_ROUNDS = 5
_NEAR = 50


def main() -> None:
    """Index a BEIR folder on the servers and ask its queries."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path, help="a BEIR folder, with its graph files")
    folder: Path = arguments.parse_args().folder
    with tempfile.TemporaryDirectory() as work, server_settings(Path(work)) as served:
        worst = anyio.run(_measure, served, folder)
    raise SystemExit(0 if worst <= _ALLOWED else 1)


async def _measure(settings: Settings, folder: Path) -> float:
    queries = [json.loads(line)["text"] for line in (folder / "queries.jsonl").read_text().splitlines()][:50]
    async with opened(settings) as service:
        await service.writer.index(lines.good(beir.read(folder), lambda _: None), service.caller.scope)
        worst = 0.0
        for source in service.servers:
            ratio, ours, bare = await _compare(service, source, queries)
            worst = max(worst, ratio)
            _console.print(f"{source}: adapter {ours:.2f} ms, driver alone {bare:.2f} ms, ratio {ratio:.3f}")
    return worst


async def _compare(service: Service, source: str, queries: list[str]) -> tuple[float, float, float]:
    adapter: Any = service.servers[source]
    scope = service.caller.scope
    allowed = normal(access(scope, service.caller.clearance))
    ratios, ours, theirs = [], [], []
    for text in queries:
        query = Query(text, service.settings.depth, scope, allowed, allowed)
        if source == "vector":
            query = replace(query, vector=await service.model.encode(text))
        elif source == "graph":  # as the joint walk asks it
            found = await service.sources["keyword"].search(query)
            query = replace(query, near=found.ids[:_NEAR])
        bare = await _watch(adapter, source, query)
        for _ in range(_ROUNDS):
            took = await _timed(partial(adapter.search, query)), await _timed(bare)
            ratios.append(took[0] / took[1])
            ours.append(took[0])
            theirs.append(took[1])
    return median(ratios), 1_000 * median(ours), 1_000 * median(theirs)


async def _watch(adapter: Any, source: str, query: Query) -> Callable[[], Awaitable[Any]]:
    """Search once; what sends the same by the driver alone."""
    sent: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    target, name = (
        (adapter._bolt, "read")
        if source == "graph"
        else (adapter._client, "query_points" if source == "vector" else "search")
    )
    call = getattr(target, name)

    async def watched(*args: Any, **kwargs: Any) -> Any:
        sent.append((args, kwargs))
        return await call(*args, **kwargs)

    with mock.patch.object(target, name, watched):
        await adapter.search(query)

    if source == "graph":
        return lambda: _bolt(adapter._bolt._driver, [args for args, _ in sent])

    async def alone() -> None:
        for args, kwargs in sent:
            await call(*args, **kwargs)

    return alone


async def _bolt(driver: neo4j.AsyncDriver, statements: list[tuple[Any, ...]]) -> None:
    for text, parameters, *_ in statements:
        async with driver.session(default_access_mode=neo4j.READ_ACCESS) as session:
            await session.execute_read(_rows, text, parameters)


async def _rows(transaction: neo4j.AsyncManagedTransaction, text: str, parameters: dict[str, Any]) -> Any:
    return await (await transaction.run(text, parameters)).data()


async def _timed(call: Callable[[], Awaitable[Any]]) -> float:
    began = perf_counter()
    await call()
    return perf_counter() - began


if __name__ == "__main__":
    main()
