"""``make bench-servers``: CPU time per query of this process and of each server, and the fraction of complete
responses.

Keywords are in a real OpenSearch, the graph is in a real Neo4j (no package contains Memgraph), vectors are in a real
Qdrant if there is one on the path, else they are embedded; queries are encoded by the static encoder. CPU times are
measured without time limits, because work that is cancelled at a limit would look cheap; so is the saving if requests
to a busy server are sent together (decision 30), in turn with sending each alone. Then the share of responses that have
every source within the default time limits is measured, one at a time, and at most 16 at a time at a rate that uses
half of the processor by the CPU times measured before. No response and no ranking comes from a cache. Exit code 1 if a
goal is missed.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, cycle
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from unittest import mock

import anyio
import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

from adapters.servers import batcher
from benchmarks.beir_folder import index_folder, read_queries
from benchmarks.claims import report
from benchmarks.servers import started_servers
from orchestrator.bootstrap import open_service
from orchestrator.cli.progress import progress_steps
from orchestrator.http.interpreter import tuned_for_serving
from orchestrator.schema.search import SearchRequest
from orchestrator.service.service import Service
from orchestrator.settings import load

_console = Console(width=120)
_CONCURRENCY = (1, 16)
_MODES = ("keyword", "vector", "graph", "hybrid")
_PRODUCTS = {"keyword": "opensearch", "graph": "neo4j", "vector": "qdrant"}
_LIFTED_MS = 60_000
_WARM_UP_QUERIES = 60
_MAX_MS = {("keyword", "own"): 1.0, ("vector", "own"): 1.0, ("hybrid", "own"): 4.0, ("hybrid", "neo4j"): 8.0}
"""Goals by mode and process, in CPU ms per query with 16 at a time."""
_BATCHED_CONCURRENCY = (16, 64)
_ROUNDS = 5
"""Rounds of the comparison of requests that are sent together and alone; medians are reported."""
_MIN_COMPLETE = {1: 0.99, 16: 0.95}
_UTILISATION = 0.5


@dataclass(frozen=True, slots=True)
class Measured:
    """CPU ms per query of this process and of each server, the median and the 95th percentile of the wall time in ms,
    and the share of responses in which no source is missing."""

    own_ms: float
    server_ms: Mapping[str, float]
    median_ms: float
    p95_ms: float
    complete: float


def main() -> None:
    """Index a BEIR folder on the servers and search for its queries."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a BEIR folder with its graph files")
    parser.add_argument("--queries", type=int, default=160, help="number of queries per measurement")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, started_servers(Path(work)) as started:
        servers = {_PRODUCTS[source]: psutil.Process(each.process.pid) for source, each in started.items()}
        settings = {"data_dir": f"{work}/data"} | {source: each.url for source, each in started.items()}
        run = partial(_run, settings, servers, arguments.folder, arguments.queries)
        passed = anyio.run(run, backend_options={"use_uvloop": True})  # the event loop of the service
    raise SystemExit(0 if passed else 1)


async def _run(settings: Mapping[str, str], servers: Mapping[str, psutil.Process], folder: Path, queries: int) -> bool:
    texts = cycle(read_queries(folder))
    table = Table(title="CPU ms per query, time limits lifted", title_justify="left")
    for column in ("mode", "at a time", "this process", *servers, "wall p50 ms"):
        table.add_column(column, justify="left" if column == "mode" else "right")
    cpu_ms: dict[tuple[str, str], float] = {}
    lifted = load(**settings, source_timeout_ms=10_000, query_encoder="static")
    async with open_service(lifted) as service:
        await index_folder(service, folder)
        with progress_steps(_console, "optimizing") as step:
            await service.maintenance.optimize(step)
        for mode in _MODES:
            for at_a_time in _CONCURRENCY:
                requests = _lifted(texts, mode, queries)
                await _measure(service, requests[:_WARM_UP_QUERIES], at_a_time, servers)
                measured = await _measure(service, requests, at_a_time, servers)
                cpu_ms |= {(mode, name): ms for name, ms in (("own", measured.own_ms), *measured.server_ms.items())}
                server_ms = (f"{ms:.2f}" for ms in measured.server_ms.values())
                table.add_row(mode, f"{at_a_time}", f"{measured.own_ms:.2f}", *server_ms, f"{measured.median_ms:.1f}")
        savings = await _savings(service, texts, servers, queries)
    _console.print(table)
    _console.print(savings)
    passed = True
    for (mode, process), goal in _MAX_MS.items():
        ms = cpu_ms[mode, process]
        passed &= report(ms <= goal, f"{mode}, {process}: at most {goal:g} ms", f"{ms:.2f} ms")
    hybrid_ms = sum(ms for (mode, _), ms in cpu_ms.items() if mode == "hybrid")
    rates = {1: None, 16: _UTILISATION * (os.cpu_count() or 1) * 1_000 / hybrid_ms}
    async with open_service(load(**settings, query_encoder="static")) as service:
        for at_a_time, minimum in _MIN_COMPLETE.items():
            requests = [SearchRequest(query=next(texts), mode="hybrid", cache="bypass") for _ in range(queries)]
            # One at a time: searches that time out open the circuits of their sources for a while.
            await _measure(service, requests[:_WARM_UP_QUERIES], 1, servers)
            rate = rates[at_a_time]
            complete = (await _measure(service, requests, at_a_time, servers, rate)).complete
            claim = f"hybrid, {at_a_time} at a time: at least {minimum:.2f} have every source in time"
            claim += f" at {rate:.0f} per second" if rate else ""
            passed &= report(complete >= minimum, claim, f"{complete:.3f}")
    return passed


async def _savings(
    service: Service, texts: Iterator[str], servers: Mapping[str, psutil.Process], queries: int
) -> Table:
    """The saving if requests to a busy server are sent together."""
    table = Table(title="hybrid: requests to a busy server together, and each alone", title_justify="left")
    for column in ("requests", "at a time", "this process", *servers, "wall p50 ms", "wall p95 ms"):
        table.add_column(column, justify="left" if column == "requests" else "right")
    for at_a_time in _BATCHED_CONCURRENCY:
        rounds: dict[str, list[tuple[float, ...]]] = {"alone": [], "together": []}
        for number in range(_ROUNDS):
            requests = _lifted(texts, "hybrid", max(queries, 5 * at_a_time))
            for name in sorted(rounds, reverse=bool(number % 2)):  # the second finds what the first has warmed up
                max_calls = len(requests) if name == "alone" else batcher.MAX_CALLS
                with mock.patch.object(batcher, "MAX_CALLS", max_calls):
                    each = await _measure(service, requests, at_a_time, servers)
                rounds[name].append((each.own_ms, *each.server_ms.values(), each.median_ms, each.p95_ms))
        alone, together = ([median(column) for column in zip(*each, strict=True)] for each in rounds.values())
        for name, row in (("alone", alone), ("together", together)):
            table.add_row(name, f"{at_a_time}", *(f"{ms:.2f}" for ms in row[:-2]), *(f"{ms:.0f}" for ms in row[-2:]))
        table.add_row("ratio", "", *(f"{new / old:.2f}" for new, old in zip(together, alone, strict=True)))
    return table


def _lifted(texts: Iterator[str], mode: str, count: int) -> list[SearchRequest]:
    """Requests without a practical time limit."""
    return [SearchRequest(query=next(texts), mode=mode, timeout_ms=_LIFTED_MS, cache="bypass") for _ in range(count)]


async def _measure(
    service: Service,
    requests: Sequence[SearchRequest],
    at_a_time: int,
    servers: Mapping[str, psutil.Process],
    rate: float | None = None,
) -> Measured:
    """Search, at most ``at_a_time`` at a time.

    :param rate: mean number of searches per second (Poisson process); ``None``: as fast as possible.
    """
    remaining = iter(requests)
    times_ms: list[float] = []
    complete = 0
    rng = random.Random(0)
    arrivals_s = accumulate(rng.expovariate(rate or 1.0) for _ in requests)

    async def searches(began_s: float) -> None:
        nonlocal complete
        for request in remaining:
            if rate:
                due_s = began_s + next(arrivals_s)
                await anyio.sleep(max(due_s - perf_counter(), 0.0))
            start = perf_counter()
            response = await service.search.search(request, service.anonymous, "servers")
            times_ms.append((perf_counter() - start) * 1_000)
            complete += not response.degraded

    with tuned_for_serving():  # as the service does
        own_s, servers_s = process_time(), {name: _cpu_s(process) for name, process in servers.items()}
        began_s = perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(at_a_time):
                group.start_soon(searches, began_s)
        own_s = process_time() - own_s
    count = len(requests)
    return Measured(
        own_s / count * 1_000,
        {name: (_cpu_s(process) - servers_s[name]) / count * 1_000 for name, process in servers.items()},
        median(times_ms),
        float(np.percentile(times_ms, 95)),
        complete / count,
    )


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()
