"""``make bench-load``: 100,000 passages of real text, uncached hybrid search over HTTP, one worker and two.

Every query is asked once, so nothing is ever answered from memory. The generator shares the machine with the
service. Ratios between two runs on one machine mean something; absolute figures belong to the machine.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console
from rich.table import Table

from adapters.embed.fit import pseudo_queries
from benchmarks.openloop import Result, offer
from benchmarks.passages import passages
from benchmarks.service import service
from orchestrator.progress import bar, steps
from orchestrator.settings import read
from orchestrator.wiring import opened

ROOT = Path(__file__).parent / ".data"
"""Of what benchmarks make and keep."""
_console = Console()
_P95_MS = 150.0
_STEP = 1.2
_DEGRADED = _FAILED = 0.01
"""Of the answers, at most: a shared machine stands still now and then, and what would come too late is refused."""
_TRIES = 2
"""A rate that is not held is tried once more: the machine is shared, and its neighbours come and go."""


def main() -> None:
    """Build what is not built yet, then load it."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--passages", type=int, default=100_000)
    arguments.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    arguments.add_argument("--seconds", type=float, default=8.0, help="of each rate")
    arguments.add_argument("--rates", type=float, nargs="*", help="queries a second; by default rising to the limit")
    chosen = arguments.parse_args()
    folder = ROOT / f"load-{chosen.passages}"
    queries = build(folder, chosen.passages)
    for workers in chosen.workers:
        _measure(folder, queries, workers, chosen.rates, chosen.seconds)


def build(folder: Path, wanted: int) -> list[str]:
    """The index and the queries, made once: distinct queries of 2 to 12 words."""
    written = folder / "queries.json"
    if not written.exists():
        _console.print("reading the documentation of this machine …")
        documents = passages(wanted)
        if len(documents) < wanted:
            _console.print(f"[yellow]this machine has {len(documents):,} passages, not {wanted:,}[/yellow]")
        began = time.monotonic()

        async def index() -> None:
            async with opened(read(data_dir=folder)) as service:
                with bar(_console, "encoding", "documents", len(documents)) as advance:
                    await service.writer.index(documents, service.caller.scope, advance)
                with steps(_console, "one segment, and the query table") as step:
                    await service.tidy(step)

        anyio.run(index)
        _console.print(f"indexed {len(documents):,} passages in {time.monotonic() - began:.0f} s")
        made = pseudo_queries([d.title for d in documents], [d.text for d in documents], limit=60_000)
        distinct = list(dict.fromkeys(query for query in made if 2 <= len(query.split()) <= 12))
        written.write_text(json.dumps(distinct))
    queries: list[str] = json.loads(written.read_text())
    return queries


def _measure(folder: Path, queries: list[str], workers: int, rates: list[float] | None, seconds: float) -> None:
    bodies = [json.dumps({"query": query, "mode": "hybrid"}).encode() for query in queries]
    random.Random(workers).shuffle(bodies)
    table = Table(
        title=f"{workers} worker{'s' if workers > 1 else ''}, open loop, hybrid, nothing cached", title_justify="left"
    )
    for column in ("offered/s", "answered/s", "p50 ms", "p95 ms", "p99 ms", "failed", "degraded", "by model"):
        table.add_column(column, justify="right")
    best: Result | None = None
    with service({"data_dir": folder}, folder / "serve.log", workers) as running:
        offer(running.port, "/v1/search", bodies[-2_000:], 100, 5, seed=0)
        supply = cycle(bodies)
        for rate in rates or _rising(workers):
            for _ in range(_TRIES):
                taken = list(islice(supply, int(rate * seconds * 1.5) + 10))
                result = offer(running.port, "/v1/search", taken, rate, seconds, seed=int(rate))
                table.add_row(*_row(result))
                if held := _held(result):
                    best = result
                    break
            if not held and not rates:
                break
    _console.print(table)
    if best:
        _console.print(
            f"[bold]{workers} worker(s): {best.rate:.0f} queries a second at p95 {best.percentile(0.95):.1f} ms[/bold]"
            f" (p50 {best.percentile(0.5):.1f}, p99 {best.percentile(0.99):.1f})"
        )
        _console.print(f"time by stage there, mean ms: {_stages(best)}")


def _held(result: Result) -> bool:
    """Whether the service kept up: nearly everything answered, in time, whole."""
    return (
        result.percentile(0.95) < _P95_MS
        and result.failures <= _FAILED * len(result.answers)
        and result.rate > 0.95 * result.offered
        and _share(result, lambda answer: bool(answer["degraded"])) < _DEGRADED
    )


def _row(result: Result) -> tuple[str, ...]:
    degraded = _share(result, lambda answer: bool(answer["degraded"]))
    by_model = _share(result, lambda answer: "embed_model" in answer["timings_ms"])
    latencies = (f"{result.percentile(share):.1f}" for share in (0.5, 0.95, 0.99))
    return (
        f"{result.offered:.0f}",
        f"{result.rate:.0f}",
        *latencies,
        str(result.failures),
        f"{degraded:.1%}",
        f"{by_model:.0%}",
    )


def _share(result: Result, test: Callable[[dict[str, Any]], bool]) -> float:
    """Of the answers that were kept."""
    return sum(test(json.loads(body)) for body in result.bodies) / max(len(result.bodies), 1)


def _rising(workers: int) -> Iterator[float]:
    rate = 150.0 * workers
    while True:
        yield rate
        rate *= _STEP


def _stages(result: Result) -> str:
    total: Counter[str] = Counter()
    answers = [json.loads(body) for body in result.bodies]
    for answer in answers:
        total.update(answer["timings_ms"] | {"took": answer["took_ms"]})
    return ", ".join(f"{stage} {spent / len(answers):.3f}" for stage, spent in sorted(total.items()))


if __name__ == "__main__":
    main()
