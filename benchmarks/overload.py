"""``make bench-overload``: twice the capacity of one worker, for a minute: what is admitted, rejected, and afterwards.

Embedded, hybrid, not cached, as ``make bench-load``; requests have the default time limit of 150 ms. Exit code 1 if a
claim is false.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

from adapters import Scope
from benchmarks.claims import out, report
from benchmarks.corpus import build_corpus, corpus_folder
from benchmarks.openloop import Load, Response, Result, offer, percentile
from benchmarks.service import ServerProcess, start_service
from orchestrator.auth.key_admin import add_key

_TIMEOUT_MS = 150
_MAX_P95_MS = 150.0
_REJECTED = (429, 503)
_MAX_REJECTED_MS = 10.0
_RECOVERY_S = 2.0
_MAX_GROWTH = 1.05
_LOWEST_RATE = 10.0
_OTHER_TENANT = 0.05
"""Fraction of the capacity that another tenant requests."""
_MAX_FAILED = 0.01
"""Fraction of the offered requests: a shared machine stalls now and then."""


def main() -> None:
    """Measure the capacity, offer twice as much, then half as much."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="duration of the overload")
    parser.add_argument("--start-rate", type=float, default=100.0, help="the first rate, in requests per second")
    arguments = parser.parse_args()
    folder = corpus_folder(arguments.passages)
    queries = build_corpus(folder, arguments.passages)
    bodies = cycle([json.dumps({"query": q, "mode": "hybrid", "timeout_ms": _TIMEOUT_MS}).encode() for q in queries])
    path = folder / "keys"
    path.unlink(missing_ok=True)
    default_key, other_key = (add_key(path, name, Scope(name), "normal", admin=False) for name in ("default", "other"))
    settings = {"data_dir": folder, "keys_file": path, "cache_bytes": 1_048_576}
    with start_service(settings, folder / "serve.log") as server, ThreadPoolExecutor() as pool:

        def load(rate: float, seconds: float, key: str = default_key) -> Result:
            batch = list(islice(bodies, int(rate * seconds * 1.2) + 50))
            return offer(server.port, "/v1/search", batch, rate, seconds, seed=1, api_key=key)

        load(arguments.start_rate, 5)
        sustained = _sustained(load, arguments.start_rate)
        # Under overload a worker completes more requests per second than at the rate that it sustains.
        capacity = max(sustained.rate, load(2 * sustained.offered, 5.0).rate)
        load(2 * capacity, 5.0)  # so that memory has grown to its size under such a load
        with MemoryWatch(server) as watch:
            other = pool.submit(load, _OTHER_TENANT * capacity, arguments.seconds, other_key)
            overloaded = load(2 * capacity, arguments.seconds)
        after = load(0.5 * sustained.offered, 6.0)
    passed = _report(capacity, sustained, overloaded, other.result(), after, watch.mib)
    raise SystemExit(0 if passed else 1)


class MemoryWatch:
    """Memory of a service, in MiB, once per second."""

    def __init__(self, server: ServerProcess) -> None:
        self.mib: list[float] = []
        self._server = server
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(1.0):
            self.mib.append(self._server.usage()[0])


def _sustained(load: Load, start_rate: float) -> Result:
    """The highest of rising rates at which all responses are in time; the first is halved until they are."""
    rate, best = start_rate, None
    while True:
        # Two attempts, because other machines share the processor.
        succeeded = next((result for result in (load(rate, 5.0) for _ in range(2)) if _is_in_time(result)), None)
        if succeeded is not None:
            best, rate = succeeded, rate * 1.15
        elif best is not None:
            return best
        elif rate < _LOWEST_RATE:
            raise SystemExit(f"not even {rate:g} requests per second are answered in time")
        else:
            rate /= 2


def _is_in_time(result: Result) -> bool:
    return result.failures <= _MAX_FAILED * len(result.responses) and result.percentile(0.95) <= _MAX_P95_MS


def _report(
    capacity: float, sustained: Result, overloaded: Result, other: Result, after: Result, mib: Sequence[float]
) -> bool:
    rejected = [response for response in overloaded.responses if response.status in _REJECTED]
    unexpected = [response for response in overloaded.responses if response.status not in {200, *_REJECTED}]
    recovered = [response for response in after.responses if response.due_s >= _RECOVERY_S]
    out.print(
        f"one worker: {sustained.offered:.0f}/s sustained at p95 {sustained.percentile(0.95):.0f} ms, capacity "
        f"{capacity:.0f}/s; offered {overloaded.offered:.0f}/s: {overloaded.rate:.0f}/s answered, "
        f"{len(rejected) / overloaded.seconds:.0f}/s rejected",
        soft_wrap=True,
        highlight=False,
    )
    admitted_ms = overloaded.percentile(0.95)
    rejected_ms = [percentile([each.ms for each in rejected], fraction) for fraction in (0.5, 0.95, 0.99)]
    recovered_ms = percentile([each.ms for each in recovered], 0.95)
    third = max(len(mib) // 3, 1)
    growth = max(mib[-third:]) / max(mib[:third])
    return all(
        [
            report(admitted_ms < _MAX_P95_MS, "p95 of admitted requests stays in the limit", f"{admitted_ms:.0f} ms"),
            report(
                rejected_ms[1] < _MAX_REJECTED_MS,
                "other requests are rejected immediately",
                "p50 {:.1f}, p95 {:.1f}, p99 {:.1f} ms".format(*rejected_ms),
            ),
            report(
                other.failures <= _MAX_FAILED * len(other.responses) and other.percentile(0.95) < _MAX_P95_MS,
                "another tenant is not affected",
                f"{other.failures} of {len(other.responses)} rejected, p95 {other.percentile(0.95):.0f} ms",
            ),
            report(not unexpected, "there are no other statuses", _statuses(unexpected)),
            report(growth < _MAX_GROWTH, "memory does not grow", f"{mib[0]:.0f} to {mib[-1]:.0f} MiB"),
            report(
                all(response.status == 200 for response in recovered) and recovered_ms < _MAX_P95_MS,
                f"the service has recovered after {_RECOVERY_S:.0f} s",
                f"half of the sustained rate offered: {_statuses(recovered)}, p95 {recovered_ms:.0f} ms",
            ),
        ]
    )


def _statuses(responses: Sequence[Response]) -> str:
    statuses = [each.status for each in responses]
    return ", ".join(f"{statuses.count(status)} of status {status}" for status in sorted(set(statuses))) or "none"


if __name__ == "__main__":
    main()
