"""``make bench-batch``: 100,000 queries through the batch endpoint of one worker, and other searches beside them.

Embedded, uncached, default settings. Throughput is compared with that of 16 clients that send the same queries one by
one, in turns. Other searches come at a third of that rate, with and without a batch, in turns. Last, the whole batch is
read by a client that stops for seconds. Exit code 1 if a claim is false.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.claims import out, report
from benchmarks.corpus import build_corpus, corpus_folder
from benchmarks.openloop import offer
from benchmarks.service import ServerProcess, start_service

_CLIENTS, _ROUNDS = 16, 5
_MIN_THROUGHPUT, _MAX_P95, _MAX_GROWTH = 0.9, 1.3, 1.1
_INTERACTIVE = 1 / 3
"""Rate of other searches, as a fraction of what 16 clients get."""
_WARM_UP = 0.1
"""Fraction of the batch after which memory is compared with its later maximum."""
_TIMEOUT_MS = 5_000
"""So that none of the 16 clients, which keep the service busy, is rejected."""
_NAMES = count()


def main() -> None:
    """Build the index if it does not exist, then search."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=100_000, help="of the batch whose reader stops")
    parser.add_argument("--round", type=int, default=2_000, help="queries of each round of throughput")
    parser.add_argument("--seconds", type=float, default=10.0, help="duration of each round of other searches")
    arguments = parser.parse_args()
    folder = corpus_folder(arguments.passages)
    queries = build_corpus(folder, arguments.passages)
    file = folder / "batch-queries.txt"
    file.write_text("\n".join(" ".join(query.split()) for query in queries), "utf-8")
    with start_service({"data_dir": folder}, folder / "batch.log") as service:
        _clients(service, queries, arguments.round)  # warm
        rate, throughput = _throughput(service, queries, file, arguments.round)
        p95 = _beside(service, queries, file, rate * _INTERACTIVE, arguments.seconds)
        whole, growth = _stopping(service, file, arguments.queries)
    claims = [
        report(throughput >= _MIN_THROUGHPUT, f"at least {_MIN_THROUGHPUT} of 16 clients", f"{throughput:.2f}"),
        report(p95 <= _MAX_P95, f"p95 of other searches at most {_MAX_P95} times that without", f"{p95:.2f}"),
        report(whole["in_order"] and whole["lines"] == arguments.queries, "each line once, in order", str(whole)),
        report(growth <= _MAX_GROWTH, f"memory grows by at most {_MAX_GROWTH}", f"{growth:.3f}"),
    ]
    raise SystemExit(not all(claims))


def _throughput(service: ServerProcess, queries: Sequence[str], file: Path, number: int) -> tuple[float, float]:
    """Searches per second of 16 clients, and that of a batch as a fraction of it: medians of rounds in turns."""
    rates, ratios = [], []
    for _ in range(_ROUNDS):
        rate = _clients(service, queries, number)
        batch = _batch(service, file, number)
        rates.append(rate)
        ratios.append(number / batch["seconds"] / rate)
        out.print(f"{_CLIENTS} clients {rate:.0f}/s, batch {number / batch['seconds']:.0f}/s: {ratios[-1]:.2f}")
    return median(rates), median(ratios)


def _beside(service: ServerProcess, queries: Sequence[str], file: Path, rate: float, seconds: float) -> float:
    """The p95 of other searches beside a batch, divided by that without: the median of rounds in turns."""
    ratios, number = list[float](), int(2 * rate * seconds) + 100
    for _ in range(_ROUNDS):
        without = offer(service.port, "/v1/search", _bodies(queries, number), rate, seconds, next(_NAMES))
        process = _start(service, file, 10_000_000)
        time.sleep(1)  # it has begun
        beside = offer(service.port, "/v1/search", _bodies(queries, number), rate, seconds, next(_NAMES))
        process.kill()
        process.wait()
        ratios.append(beside.percentile(0.95) / without.percentile(0.95))
        out.print(
            f"{rate:.0f}/s: p50 {without.percentile(0.5):.1f} ms, beside {beside.percentile(0.5):.1f} ms; "
            f"p95 {without.percentile(0.95):.1f} ms, beside {beside.percentile(0.95):.1f} ms: {ratios[-1]:.2f}; "
            f"failures {without.failures} and {beside.failures}"
        )
    return median(ratios)


def _stopping(service: ServerProcess, file: Path, number: int) -> tuple[dict[str, Any], float]:
    """The outcome of a batch whose reader stops for seconds, and the largest memory relative to that after a tenth."""
    pause = ["--pause-every", str(max(number // 20, 1)), "--pause-s", "3"]
    process = _start(service, file, number, *pause)
    begin, samples = time.monotonic(), list[tuple[float, float]]()
    while process.poll() is None:
        samples.append((time.monotonic() - begin, service.usage()[0]))
        time.sleep(0.5)
    outcome: dict[str, Any] = json.loads(process.communicate()[0])
    warm = next(mib for second, mib in samples if second >= samples[-1][0] * _WARM_UP)
    out.print(f"{outcome}; MiB: {warm:.0f} after a tenth, then at most {max(mib for _, mib in samples):.0f}")
    return outcome, max(mib for second, mib in samples) / warm


def _clients(service: ServerProcess, queries: Sequence[str], number: int) -> float:
    """Searches per second of clients that send one after another."""
    bodies = iter(_bodies(queries, number))

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        for body in bodies:
            writer.write(
                b"POST /v1/search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n" % len(body) + body
            )
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"a search failed: {head!r}")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
        writer.close()

    async def all_clients() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(_CLIENTS):
                group.create_task(client())

    start = time.perf_counter()
    asyncio.run(all_clients())
    return number / (time.perf_counter() - start)


def _bodies(queries: Sequence[str], number: int) -> list[bytes]:
    name = next(_NAMES)
    searches = ({"query": f"{queries[n % len(queries)]} q{name} {n}", "timeout_ms": _TIMEOUT_MS} for n in range(number))
    return [json.dumps(search).encode() for search in searches]


def _batch(service: ServerProcess, file: Path, number: int) -> dict[str, Any]:
    process = _start(service, file, number)
    outcome: dict[str, Any] = json.loads(process.communicate()[0])
    if outcome["lines"] != number or outcome["failed"]:
        raise SystemExit(f"lines failed: {outcome}")
    return outcome


def _start(service: ServerProcess, file: Path, number: int, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks.batch_client", "--port", str(service.port), "--queries", str(file)]
    command += ["--count", str(number), "--name", f"b{next(_NAMES)}", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


if __name__ == "__main__":
    main()
