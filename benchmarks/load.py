"""``make bench-load``: 100,000 passages of real text, uncached hybrid search over HTTP, two workers, each encoder.

The highest rate that the workers sustain is found; then latencies at 70 % and at a fifth of it are measured, at 70 %
also those of :mod:`benchmarks.bare_service`, which only calls the engines. Every query is sent once, so no response
comes from a cache. Last, queries are repeated as users repeat them (Zipf's law), so that most responses come from the
cache. The load generator uses the same machine as the service; the goals are for a machine with two cores. Compare two
runs by their ratios. Exit code 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, cycle, islice
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families
from rich.table import Table

from benchmarks.claims import out, report
from benchmarks.corpus import build_corpus, corpus_folder
from benchmarks.openloop import Result, offer
from benchmarks.service import ServerProcess, start_python, start_service
from tests.servers.start import free_port

_GOALS = {"model": 550.0, "static": 1_000.0}
"""Requests per second that two workers on two cores have to sustain, by encoder."""
_MAX_P95_MS, _MAX_P99_MS, _MAX_LOW_P50_MS = 50.0, 30.0, 6.0
"""Limits at the highest rate, at 70 % of it, and at a fifth of it."""
_MAX_RATIO = 1.5
"""Maximum ratio to the bare engines, in CPU time and in p99."""
_MAX_UNEVEN = 0.2
_MAX_MEMORY = 0.9
_FIRST, _FACTORS = 0.4, (1.12, 1.04)
"""The first rate as a fraction of the goal, halved until one is sustained; then the factors from each rate to the next,
large while they are sustained, then small."""
_LOWEST_RATE = 10.0
_ATTEMPTS = 2
"""A rate at which the service falls behind is tried again: other machines share the processor."""
_SEEDS = count()
"""Each run has other arrival times: the same burst would fail every attempt at a rate."""
_MAX_FAILED = 0.001
_MEMORY = "trivium_memory_bytes"
_MANIFEST = Path(__file__).parents[1] / "k8s" / "base" / "search.yaml"
_REPEATED, _REPEATED_GOAL, _REPEATED_RATE = 2_000, 3_000.0, 3_200.0
"""Distinct queries that are repeated; requests per second: the goal, and those that are sent."""
_WARM_UP_ROUNDS, _WARM_UP_RATE = 2, 100
"""Rounds of all queries that fill the caches, and queries per second, for each process. Queries reach the processes at
random: of two, each misses one query in 16. All rounds take 40 s; a response is cached for at least 54 s."""


@dataclass(slots=True)
class _Measured:
    """One rate: its responses, the CPU ms per response, and the number of responses of each process."""

    result: Result
    cpu_ms: float
    by_process: list[int]


def main() -> None:
    """Build the index if it does not exist, then send requests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=8.0, help="duration of each rate")
    parser.add_argument("--encoders", nargs="+", choices=tuple(_GOALS), default=tuple(_GOALS))
    arguments = parser.parse_args()
    folder = corpus_folder(arguments.passages)
    queries = build_corpus(folder, arguments.passages)
    random.Random(arguments.workers).shuffle(queries)
    bodies = cycle([json.dumps({"query": query, "mode": "hybrid"}).encode() for query in queries])
    passed = [_measure(encoder, folder, bodies, arguments.workers, arguments.seconds) for encoder in arguments.encoders]
    passed.append(_repeated(folder, queries[:_REPEATED], arguments.workers, arguments.seconds))
    raise SystemExit(0 if all(passed) else 1)


def _measure(encoder: str, folder: Path, bodies: Iterator[bytes], workers: int, seconds: float) -> bool:
    table = Table(title=f"{workers} workers, query encoder {encoder}, open loop, hybrid", title_justify="left")
    for column in ("service", "offered/s", "answered/s", "p50", "p95", "p99 ms", "failed", "degraded", "CPU ms"):
        table.add_column(column, justify="left" if column == "service" else "right")
    table.add_column("by process", justify="right")

    def run(server: ServerProcess, name: str, rate: float) -> _Measured:
        measured = _offer(server, list(islice(bodies, int(rate * seconds * 1.5) + 10)), rate, seconds)
        table.add_row(name, *_row(measured))
        return measured

    settings = {"data_dir": folder, "query_encoder": encoder}
    with start_service(settings, folder / "serve.log", workers) as server:
        _offer(server, list(islice(bodies, 2_000)), 100, 5)
        best = _highest(lambda rate: run(server, "ours", rate), _FIRST * _GOALS[encoder])
        high = run(server, "ours", 0.7 * best.result.rate)
        used_mib = _memory_mib(server) / workers
        low = run(server, "ours", 0.2 * best.result.rate)
    port = free_port()
    command = ["-m", "benchmarks.bare_service", str(folder), "--port", str(port), "--workers", str(workers)]
    env = {"TRIVIUM_QUERY_ENCODER": encoder}
    with start_python(command, port, "/openapi.json", folder / "bare.log", env) as server:
        _offer(server, list(islice(bodies, 2_000)), 100, 5)
        bare = run(server, "bare engines", 0.7 * best.result.rate)
    out.print(table)
    out.print(f"mean time by stage at {high.result.offered:.0f}/s, in ms: {_stages(high.result)}", highlight=False)
    p99, bare_p99 = high.result.percentile(0.99), bare.result.percentile(0.99)
    low_count, high_count = min(best.by_process, default=0), max(best.by_process, default=1)
    uneven = 1 - low_count / high_count if len(best.by_process) == workers else 1.0
    return all(
        [
            report(best.result.rate >= _GOALS[encoder], f"{encoder}: sustains {_GOALS[encoder]:.0f}/s", _rate(best)),
            report(p99 <= _MAX_P99_MS, f"p99 at 70 % of it is at most {_MAX_P99_MS:g} ms", f"{p99:.1f} ms"),
            report(
                low.result.percentile(0.5) <= _MAX_LOW_P50_MS,
                f"p50 at a fifth of it is at most {_MAX_LOW_P50_MS:g} ms",
                f"{low.result.percentile(0.5):.1f} ms",
            ),
            report(
                high.cpu_ms <= _MAX_RATIO * bare.cpu_ms and p99 <= _MAX_RATIO * bare_p99,
                f"at most {_MAX_RATIO:g} times the CPU and the p99 of the bare engines",
                f"{high.cpu_ms / bare.cpu_ms:.2f} and {p99 / bare_p99:.2f}",
            ),
            report(
                used_mib <= _MAX_MEMORY * (limit := _memory_limit_mib()),
                f"memory of a process is under {_MAX_MEMORY:.0%} of the limit of a pod, {limit:.0f} MiB",
                f"{used_mib:.0f} MiB",
            ),
            report(uneven <= _MAX_UNEVEN, f"processes differ by at most {_MAX_UNEVEN:.0%}", f"{best.by_process}"),
        ]
    )


def _repeated(folder: Path, queries: list[str], workers: int, seconds: float) -> bool:
    """Queries by Zipf's law: the one of rank ``r`` is sent in proportion to ``1 / r``."""
    bodies = [json.dumps({"query": query, "mode": "hybrid"}).encode() for query in queries]
    weights = [1 / rank for rank in range(1, len(bodies) + 1)]
    sent = random.Random(0).choices(bodies, weights, k=int(_REPEATED_RATE * seconds * 1.2))
    with start_service({"data_dir": folder}, folder / "serve.log", workers) as server:
        rate = _WARM_UP_RATE * workers
        for number in range(_WARM_UP_ROUNDS * workers):  # each process has a cache of its own
            random.Random(number).shuffle(bodies)
            offer(server.port, "/v1/search", bodies, rate, len(bodies) / rate, seed=0)
        measured = _offer(server, sent, _REPEATED_RATE, seconds)
    result = measured.result
    hits = fmean(json.loads(body)["cache"] == "l1" for body in result.bodies)
    claim = f"{_REPEATED_GOAL:.0f}/s of {len(bodies):,} queries by Zipf's law, p95 below {_MAX_P95_MS:g} ms"
    is_reached = result.rate >= _REPEATED_GOAL and _is_sustained(result)
    return report(is_reached, claim, f"{_rate(measured)}, {hits:.1%} from the cache")


def _highest(run: Callable[[float], _Measured], first_rate: float) -> _Measured:
    """The highest rate that is sustained."""

    def sustained(rate: float) -> _Measured | None:
        attempts = (run(rate) for _ in range(_ATTEMPTS))
        return next((each for each in attempts if _is_sustained(each.result)), None)

    rate = first_rate
    while (best := sustained(rate)) is None:
        if rate < _LOWEST_RATE:
            raise SystemExit(f"not even {rate:.0f} requests per second are sustained")
        rate /= 2
    for factor in _FACTORS:
        while (higher := sustained(rate * factor)) is not None:
            best, rate = higher, rate * factor
    return best


def _is_sustained(result: Result) -> bool:
    """Whether all responses were in time, and from all sources."""
    return (
        result.percentile(0.95) < _MAX_P95_MS
        and result.failures <= _MAX_FAILED * len(result.responses)
        and result.rate > 0.97 * result.offered
        and not _degraded(result)
    )


def _offer(server: ServerProcess, bodies: list[bytes], rate: float, seconds: float) -> _Measured:
    clients: list[set[int]] = []
    before_s = server.cpu_s()
    result = offer(
        server.port,
        "/v1/search",
        bodies,
        rate,
        seconds,
        seed=next(_SEEDS),
        before_close=lambda: clients.extend(server.connections()),
    )
    cpu_ms = (server.cpu_s() - before_s) / max(len(result.responses), 1) * 1_000
    return _Measured(result, cpu_ms, [sum(result.by_connection[each] for each in ports) for ports in clients])


def _row(measured: _Measured) -> tuple[str, ...]:
    result = measured.result
    return (
        f"{result.offered:.0f}",
        f"{result.rate:.0f}",
        *(f"{result.percentile(fraction):.1f}" for fraction in (0.5, 0.95, 0.99)),
        str(result.failures),
        f"{_degraded(result):.1%}",
        f"{measured.cpu_ms:.2f}",
        " ".join(map(str, measured.by_process)),
    )


def _memory_mib(server: ServerProcess) -> float:
    """Memory of all processes, without mapped files, as the service reports it."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as response:
        families = text_string_to_metric_families(response.read().decode())
        (value,) = (sample.value for family in families for sample in family.samples if sample.name == _MEMORY)
    return float(value) / 2**20


def _memory_limit_mib() -> float:
    """The memory limit of a pod that searches."""
    deployment = next(yaml.safe_load_all(_MANIFEST.read_text()))
    limit: str = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    return float(limit.removesuffix("Gi")) * 1_024


def _rate(measured: _Measured) -> str:
    result = measured.result
    return f"{result.rate:.0f}/s with p95 {result.percentile(0.95):.1f} ms and {measured.cpu_ms:.2f} ms of CPU each"


def _degraded(result: Result) -> float:
    """The fraction of the stored responses that are degraded; 0 for those of the bare engines."""
    responses: list[dict[str, Any]] = [json.loads(body) for body in result.bodies]
    return fmean(bool(each.get("degraded")) for each in responses) if responses else 0.0


def _stages(result: Result) -> str:
    total_ms: Counter[str] = Counter()
    responses = [json.loads(body) for body in result.bodies]
    for response in responses:
        total_ms.update(response["timings_ms"] | {"took": response["took_ms"]})
    return ", ".join(f"{stage} {ms / len(responses):.3f}" for stage, ms in sorted(total_ms.items()))


if __name__ == "__main__":
    main()
