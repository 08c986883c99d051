"""``make soak``: an hour of searches, writes, deletes and invalid requests: memory and descriptors must not grow.

Exit code 1 if one of them grew in the second half of the time, or if more searches failed than a shared machine
explains.
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

from benchmarks.corpus import build_corpus
from benchmarks.openloop import offer
from benchmarks.passages import passages
from benchmarks.service import ServerProcess, start_service

out = Console()

_RATE = 60.0
_MAX_GROWTH, _MAX_NEW_DESCRIPTORS = 1.05, 8
"""Memory in the second half relative to the first; more descriptors, because the number of connections varies."""
_REPORTS, _FIRST_HALF = 12, 6
_MAX_FAILED = 0.01
"""Fraction of the searches: a shared machine stalls now and then, and late requests are rejected."""
_EXPECTED_STATUSES = {200, 404, 422}


def main() -> None:
    """Send requests, record memory and descriptors, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3_600.0)
    parser.add_argument("--passages", type=int, default=5_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        queries = build_corpus(Path(folder, "data"), arguments.passages)
        settings = {"data_dir": f"{folder}/data", "cache_bytes": 4_194_304}
        with start_service(settings, Path(folder, "serve.log")) as server:
            passed = _soak(server, queries, arguments.seconds)
    raise SystemExit(0 if passed else 1)


def _soak(server: ServerProcess, queries: list[str], seconds: float) -> bool:
    rng = random.Random(0)
    bodies = [json.dumps({"query": query, "mode": "hybrid", "timeout_ms": 2_000}).encode() for query in queries]
    writer = Writer(server.port)
    writer.start()
    searches = failures = 0
    usages: list[tuple[float, int]] = []
    for number in range(_REPORTS):
        rng.shuffle(bodies)
        result = offer(server.port, "/v1/search", bodies, _RATE, seconds / _REPORTS, seed=number)
        failures += result.failures
        searches += len(result.responses)
        mib, descriptors = server.usage()
        usages.append((mib, descriptors))
        out.print(
            f"{(number + 1) * seconds / _REPORTS:6.0f} s: {mib:.0f} MiB, {descriptors} descriptors, "
            f"p95 {result.percentile(0.95):.0f} ms, {result.failures} of {len(result.responses)} searches failed",
            soft_wrap=True,
            highlight=False,
        )
    writer.stopping.set()
    writer.join()
    # The minimum of each half: index files that are being written and uploads are not permanent.
    periods = (usages[:_FIRST_HALF], usages[_FIRST_HALF:])
    first, second = ([min(values) for values in zip(*half, strict=True)] for half in periods)
    is_flat = second[0] <= first[0] * _MAX_GROWTH and second[1] <= first[1] + _MAX_NEW_DESCRIPTORS
    out.print(f"writes and reads by status: {dict(writer.statuses)}", soft_wrap=True, highlight=False)
    out.print(
        f"minimum in the first and in the second half: {first[0]:.0f} and {second[0]:.0f} MiB, "
        f"{first[1]} and {second[1]} descriptors; {failures} of {searches:,} searches failed",
        soft_wrap=True,
        highlight=False,
    )
    return is_flat and failures <= _MAX_FAILED * searches and set(writer.statuses) <= _EXPECTED_STATUSES


class Writer(threading.Thread):
    """Writes the same few documents again and again, deletes some, reads some, and sends invalid requests."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.stopping = threading.Event()
        self.statuses: Counter[int] = Counter()
        self._url = f"http://127.0.0.1:{port}/v1"
        self._texts = [document.text for document in passages(200)]

    def run(self) -> None:
        """Send about four requests per second until ``stopping`` is set."""
        rng = random.Random(1)
        while not self.stopping.wait(0.25):
            id_ = f"soak-{rng.randrange(200)}"
            document = json.dumps({"id": id_, "text": rng.choice(self._texts)}).encode()
            method, path, body = rng.choice(
                [
                    ("POST", "/documents", document),
                    ("POST", "/documents", document[:-5]),
                    ("DELETE", f"/documents/{id_}", None),
                    ("GET", f"/documents/{id_}", None),
                    ("POST", "/search", b"{"),
                ]
            )
            request = urllib.request.Request(self._url + path, body, method=method)  # noqa: S310  # the service under test
            try:
                with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                    response.read()
                    self.statuses[response.status] += 1
            except urllib.error.HTTPError as error:
                self.statuses[error.code] += 1
                error.close()
            except OSError:
                self.statuses[0] += 1  # the connection was lost without a response


if __name__ == "__main__":
    main()
