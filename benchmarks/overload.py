"""``make bench-overload``: twice of what one worker can do, for a minute: what is admitted, refused, kept, and after.

Embedded, hybrid, nothing cached, as ``make bench-load``; callers give the 150 ms that are the default. Ends with 1 if a
promise was broken.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

from adapters import Scope
from benchmarks.claims import out, say
from benchmarks.load import ROOT, build
from benchmarks.openloop import Answer, Load, Result, offer, percentile
from benchmarks.service import Running, service
from orchestrator import keys

_TIMEOUT_MS = 150
_P95_MS = 150.0
_REFUSED = (429, 503)
_REFUSED_MS = 10.0
_BACK_S = 2.0
_GROWN = 1.05
_OTHER = 0.05
"""Of what it can do, what another tenant asks for."""
_FAILED = 0.01
"""Of what is offered, what may be refused: a machine that is shared stands still now and then."""


def main() -> None:
    """Measure what it can do, offer twice that, and look again."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--passages", type=int, default=20_000)
    arguments.add_argument("--seconds", type=float, default=60.0, help="of too much")
    chosen = arguments.parse_args()
    folder = ROOT / f"load-{chosen.passages}"
    queries = build(folder, chosen.passages)
    bodies = cycle([json.dumps({"query": q, "mode": "hybrid", "timeout_ms": _TIMEOUT_MS}).encode() for q in queries])
    path = folder / "keys"
    path.unlink(missing_ok=True)
    ours, theirs = (keys.add(path, name, Scope(name), "normal", admin=False) for name in ("default", "other"))
    settings = {"data_dir": folder, "keys_file": path, "cache_bytes": 1_048_576}
    with service(settings, folder / "serve.log") as running, ThreadPoolExecutor() as beside:

        def load(rate: float, seconds: float, key: str = ours) -> Result:
            taken = list(islice(bodies, int(rate * seconds * 1.2) + 50))
            return offer(running.port, "/v1/search", taken, rate, seconds, seed=1, key=key)

        load(100, 5)
        usual = _usual(load)
        # What it answers when far too much is offered is more than what it answers without refusing any.
        capacity = max(usual.rate, load(2 * usual.offered, 5.0).rate)
        load(2 * capacity, 5.0)  # so that memory is what it is under such a load
        with Watched(running) as watched:
            other = beside.submit(load, _OTHER * capacity, chosen.seconds, theirs)
            flood = load(2 * capacity, chosen.seconds)
        after = load(0.5 * usual.offered, 6.0)
    raise SystemExit(0 if _report(capacity, usual, flood, other.result(), after, watched.mib) else 1)


class Watched:
    """Memory of a service, in MiB, once a second."""

    def __init__(self, running: Running) -> None:
        self.mib: list[float] = []
        self._running = running
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(1.0):
            self.mib.append(self._running.usage()[0])


def _usual(load: Load) -> Result:
    """The highest of rising rates of which all is answered in time."""
    rate, held = 100.0, None
    while True:
        # Twice, if need be: the machine is shared, and its neighbours come and go.
        good = next((result for result in (load(rate, 5.0) for _ in range(2)) if _in_time(result)), None)
        if good is None:
            if held is None:
                raise SystemExit("not even 100 requests a second are answered in time")
            return held
        held, rate = good, rate * 1.15


def _in_time(result: Result) -> bool:
    return result.failures <= _FAILED * len(result.answers) and result.percentile(0.95) <= _P95_MS


def _report(capacity: float, usual: Result, flood: Result, other: Result, after: Result, mib: Sequence[float]) -> bool:
    refused = [answer for answer in flood.answers if answer.status in _REFUSED]
    others = [answer for answer in flood.answers if answer.status not in {200, *_REFUSED}]
    late = [answer for answer in after.answers if answer.due_s >= _BACK_S]
    out.print(
        f"one worker: all of {usual.offered:.0f}/s at p95 {usual.percentile(0.95):.0f} ms, {capacity:.0f}/s at most; "
        f"offered {flood.offered:.0f}/s: {flood.rate:.0f}/s answered, {len(refused) / flood.seconds:.0f}/s refused",
        highlight=False,
    )
    admitted_ms = flood.percentile(0.95)
    refused_ms = [percentile([each.ms for each in refused], share) for share in (0.5, 0.95, 0.99)]
    third = max(len(mib) // 3, 1)
    grown = max(mib[-third:]) / max(mib[:third])
    return all(
        [
            say(admitted_ms < _P95_MS, "what is admitted keeps its p95", f"{admitted_ms:.0f} ms"),
            say(
                refused_ms[1] < _REFUSED_MS,
                "the rest is refused at once",
                "p50 {:.1f}, p95 {:.1f}, p99 {:.1f} ms".format(*refused_ms),
            ),
            say(
                other.failures <= _FAILED * len(other.answers) and other.percentile(0.95) < _P95_MS,
                "another tenant does not notice",
                f"{other.failures} of {len(other.answers)} refused, p95 {other.percentile(0.95):.0f} ms",
            ),
            say(not others, "and there is nothing else", f"{_statuses(others)}"),
            say(grown < _GROWN, "memory is flat", f"{mib[0]:.0f} to {mib[-1]:.0f} MiB"),
            say(
                all(answer.status == 200 for answer in late) and percentile([each.ms for each in late], 0.95) < _P95_MS,
                f"{_BACK_S:.0f} s later all is as before",
                f"half of it offered: {_statuses(late)}, p95 {percentile([each.ms for each in late], 0.95):.0f} ms",
            ),
        ]
    )


def _statuses(answers: Sequence[Answer]) -> str:
    counts = {status: sum(each.status == status for each in answers) for status in {each.status for each in answers}}
    return ", ".join(f"{count} of status {status}" for status, count in sorted(counts.items())) or "nothing"


if __name__ == "__main__":
    main()
