"""``make bench-load``: 100,000 passages of real text, uncached hybrid search over HTTP, one worker and two.

Every query is sent once, so no response comes from a cache. The load generator uses the same machine as the service.
Compare two runs on one machine by their ratio; absolute figures depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.corpus import build_corpus, corpus_folder
from benchmarks.openloop import Result, offer
from benchmarks.service import start_service

_console = Console()
_MAX_P95_MS = 150.0
_RATE_FACTOR = 1.2
_MAX_DEGRADED = _MAX_FAILED = 0.01
"""Fractions of the responses: a shared machine stalls now and then, and late requests are rejected."""
_ATTEMPTS = 2
"""A rate at which the service falls behind is tried again: other machines share the processor."""


def main() -> None:
    """Build the index if it does not exist, then send requests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=8.0, help="duration of each rate")
    parser.add_argument("--rates", type=float, nargs="*", help="queries per second; default: rising up to the limit")
    arguments = parser.parse_args()
    folder = corpus_folder(arguments.passages)
    queries = build_corpus(folder, arguments.passages)
    for workers in arguments.workers:
        _measure(folder, queries, workers, arguments.rates, arguments.seconds)


def _measure(folder: Path, queries: list[str], workers: int, rates: list[float] | None, seconds: float) -> None:
    bodies = [json.dumps({"query": query, "mode": "hybrid"}).encode() for query in queries]
    random.Random(workers).shuffle(bodies)
    table = Table(
        title=f"{workers} worker{'s' if workers > 1 else ''}, open loop, hybrid, not cached", title_justify="left"
    )
    for column in ("offered/s", "answered/s", "p50 ms", "p95 ms", "p99 ms", "failed", "degraded", "by model"):
        table.add_column(column, justify="right")
    best: Result | None = None
    with start_service({"data_dir": folder}, folder / "serve.log", workers) as server:
        offer(server.port, "/v1/search", bodies[-2_000:], 100, 5, seed=0)
        remaining = cycle(bodies)
        for rate in rates or _rising_rates(workers):
            succeeded = False
            for _ in range(_ATTEMPTS):
                batch = list(islice(remaining, int(rate * seconds * 1.5) + 10))
                result = offer(server.port, "/v1/search", batch, rate, seconds, seed=int(rate))
                table.add_row(*_row(result))
                if succeeded := _is_sustained(result):
                    best = result
                    break
            if not succeeded and not rates:
                break
    _console.print(table)
    if best:
        _console.print(
            f"[bold]{workers} worker(s): {best.rate:.0f} queries per second, p95 {best.percentile(0.95):.1f} ms[/bold]"
            f" (p50 {best.percentile(0.5):.1f}, p99 {best.percentile(0.99):.1f})"
        )
        _console.print(f"mean time by stage at that rate, in ms: {_stages(best)}")


def _is_sustained(result: Result) -> bool:
    """Whether nearly all requests were answered in time and from all sources."""
    return (
        result.percentile(0.95) < _MAX_P95_MS
        and result.failures <= _MAX_FAILED * len(result.responses)
        and result.rate > 0.95 * result.offered
        and _fraction(result, _is_degraded) < _MAX_DEGRADED
    )


def _row(result: Result) -> tuple[str, ...]:
    latencies = (f"{result.percentile(fraction):.1f}" for fraction in (0.5, 0.95, 0.99))
    return (
        f"{result.offered:.0f}",
        f"{result.rate:.0f}",
        *latencies,
        str(result.failures),
        f"{_fraction(result, _is_degraded):.1%}",
        f"{_fraction(result, _is_encoded_by_model):.0%}",
    )


def _is_degraded(response: dict[str, Any]) -> bool:
    return bool(response["degraded"])


def _is_encoded_by_model(response: dict[str, Any]) -> bool:
    return "embed_model" in response["timings_ms"]


def _fraction(result: Result, condition: Callable[[dict[str, Any]], bool]) -> float:
    """The fraction of the stored responses for which a condition is true."""
    return sum(condition(json.loads(body)) for body in result.bodies) / max(len(result.bodies), 1)


def _rising_rates(workers: int) -> Iterator[float]:
    rate = 150.0 * workers
    while True:
        yield rate
        rate *= _RATE_FACTOR


def _stages(result: Result) -> str:
    total_ms: Counter[str] = Counter()
    responses = [json.loads(body) for body in result.bodies]
    for response in responses:
        total_ms.update(response["timings_ms"] | {"took": response["took_ms"]})
    return ", ".join(f"{stage} {ms / len(responses):.3f}" for stage, ms in sorted(total_ms.items()))


if __name__ == "__main__":
    main()
