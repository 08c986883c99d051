"""``make soak``: searches, writes, deletes and what is refused, steadily, for an hour: memory and descriptors.

Ends with 1 if either has grown in the second half of the time, or more searches fail than a shared machine explains.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

from rich.console import Console

from benchmarks.load import build
from benchmarks.openloop import offer
from benchmarks.passages import passages
from benchmarks.service import Running, service

out = Console()

_RATE = 60.0
_PASSAGES = 5_000
_GROWN, _CONNECTIONS = 1.05, 8
"""Memory in the second half for that in the first; descriptors more, for there are more connections at times."""
_REPORTS, _HALF = 12, 6
_FAILED = 0.01
"""Of the searches: a machine that is shared stands still now and then, and what comes too late is refused."""


def main() -> None:
    """Load it, watch it, judge."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=3_600.0)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        queries = build(Path(folder, "data"), _PASSAGES)
        settings = {"data_dir": f"{folder}/data", "cache_bytes": 4_194_304, "ranking_memo": 200, "query_memo": 500}
        with service(settings, Path(folder, "serve.log")) as running:
            broken = _soak(running, queries, chosen.seconds)
    raise SystemExit(1 if broken else 0)


def _soak(running: Running, queries: list[str], seconds: float) -> bool:
    dice = random.Random(0)
    bodies = [json.dumps({"query": query, "mode": "hybrid", "timeout_ms": 2_000}).encode() for query in queries]
    writer = Writer(running.port)
    writer.start()
    asked = failures = 0
    seen: list[tuple[float, int]] = []
    for number in range(_REPORTS):
        dice.shuffle(bodies)
        result = offer(running.port, "/v1/search", bodies, _RATE, seconds / _REPORTS, seed=number)
        failures += result.failures
        asked += len(result.answers)
        mib, descriptors = running.usage()
        seen.append((mib, descriptors))
        out.print(
            f"{(number + 1) * seconds / _REPORTS:6.0f} s: {mib:.0f} MiB, {descriptors} descriptors, "
            f"p95 {result.percentile(0.95):.0f} ms, {result.failures} of {len(result.answers)} searches failed",
            highlight=False,
        )
    writer.over.set()
    writer.join()
    # The least of each half: what comes and goes between (a version that is written, an upload) is not what stays.
    first, second = ([min(each) for each in zip(*part, strict=True)] for part in (seen[:_HALF], seen[_HALF:]))
    flat = second[0] <= first[0] * _GROWN and second[1] <= first[1] + _CONNECTIONS
    wrong = {status: count for status, count in writer.statuses.items() if status not in {200, 404, 422}}
    out.print(f"writes and reads: {dict(writer.statuses)}", highlight=False)
    out.print(
        f"least in the first half and in the second: {first[0]:.0f} and {second[0]:.0f} MiB, "
        f"{first[1]} and {second[1]} descriptors; {failures} of {asked:,} searches failed",
        highlight=False,
    )
    return not flat or failures > _FAILED * asked or bool(wrong)


class Writer(threading.Thread):
    """Writes the same few documents again and again, deletes some, reads some, and sends what is refused."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.statuses: Counter[int] = Counter()
        self._url = f"http://127.0.0.1:{port}/v1"
        self._texts = [document.text for document in passages(200)]

    def run(self) -> None:
        """Until it is over, some four requests a second."""
        dice = random.Random(1)
        while not self.over.wait(0.25):
            id_ = f"soak-{dice.randrange(200)}"
            document = json.dumps({"id": id_, "text": dice.choice(self._texts)}).encode()
            method, path, body = dice.choice(
                [
                    ("POST", "/documents", document),
                    ("POST", "/documents", document[:-5]),
                    ("DELETE", f"/documents/{id_}", None),
                    ("GET", f"/documents/{id_}", None),
                    ("POST", "/search", b"{"),
                ]
            )
            request = urllib.request.Request(self._url + path, body, method=method)  # noqa: S310  # our own service
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                    answer.read()
                    self.statuses[answer.status] += 1
            except urllib.error.HTTPError as error:
                self.statuses[error.code] += 1
                error.close()
            except OSError:
                self.statuses[0] += 1  # a connection was lost, which no answer explains


if __name__ == "__main__":
    main()
