"""``make bench-telemetry``: CPU time that metrics and traces take of a request, relative to that of a search.

A search with the static encoder, the cheapest there is, is computed by the real service on the passages of
``make bench-load``; then what is recorded of it is recorded again and again, in a service of one process and in one of
several. Exit code 1 if that takes more than 3 % of the search.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import anyio

from benchmarks.claims import out, report
from benchmarks.corpus import build_corpus, corpus_folder
from orchestrator.bootstrap import open_service
from orchestrator.http.metrics import ServiceMetrics
from orchestrator.schema.search import SearchRequest
from orchestrator.service.response_cache import EncodedResponse
from orchestrator.settings import load
from orchestrator.telemetry.registry import MULTIPROCESS_VARIABLE
from orchestrator.telemetry.tracing import Tracing
from tests.orchestrator.telemetry.test_tracing import Collector

_MAX_FRACTION = 0.03
_QUERIES, _WARM_UP, _RUNS, _ROUNDS = 600, 200, 2_000, 5


def main() -> None:
    """Measure in one process, then as one of several."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=20_000)
    passages = parser.parse_args().passages
    folder = corpus_folder(passages)
    queries = build_corpus(folder, passages)[:_QUERIES]
    if MULTIPROCESS_VARIABLE in os.environ:
        raise SystemExit(0 if anyio.run(_measure, folder, queries) else 1)
    is_within = anyio.run(_measure, folder, queries)
    with tempfile.TemporaryDirectory() as shared:  # prometheus-client reads the variable when it is imported
        command = [sys.executable, "-m", "benchmarks.telemetry_cost", "--passages", str(passages)]
        other = subprocess.run(command, env=os.environ | {MULTIPROCESS_VARIABLE: shared}, check=False)
    raise SystemExit(0 if is_within and not other.returncode else 1)


async def _measure(folder: Path, queries: list[str]) -> bool:
    with Collector() as collector:
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.endpoint
        return await _measure_with_collector(folder, queries)


async def _measure_with_collector(folder: Path, queries: list[str]) -> bool:
    async with open_service(load(data_dir=folder, query_encoder="static", source_timeout_ms=60_000)) as service:
        responses: list[EncodedResponse] = []
        start = process_time()
        for query in queries:
            if len(responses) == _WARM_UP:
                start = process_time()
            request = SearchRequest(query=query, mode="hybrid", timeout_ms=60_000)
            responses.append(await service.search.respond(request, service.anonymous, "benchmark"))
        search_us = (process_time() - start) / (len(queries) - _WARM_UP) * 1e6
        metrics, response = ServiceMetrics(service), responses[-1]
        tracing = Tracing("benchmark")

        def trace() -> None:
            span = tracing.start("POST", {})
            span.end("POST /v1/search", {"http.response.status_code": 200}, response.timings)

        recorded_us = _us(lambda: metrics.record("POST", "/v1/search", 200, 0.01, response))
        traced_us = _us(trace)
        tracing.close()
    kind = "one of several processes" if MULTIPROCESS_VARIABLE in os.environ else "one process"
    out.print(f"{kind}: a search {search_us:.0f} µs, metrics {recorded_us:.1f} µs, traces {traced_us:.1f} µs")
    fraction = (recorded_us + traced_us) / search_us
    return report(fraction <= _MAX_FRACTION, f"{kind}: at most {_MAX_FRACTION:.0%} of a search", f"{fraction:.1%}")


def _us(function: Callable[[], object]) -> float:
    times = timeit.repeat(function, timer=process_time, number=_RUNS, repeat=_ROUNDS)
    return median(times) / _RUNS * 1e6


if __name__ == "__main__":
    main()
