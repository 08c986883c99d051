"""Random requests within the limits of size: filters, queries, documents and bodies that cost as much as they may.

The event loop of the service is observed from outside: another process reads ``/livez`` every few milliseconds, and
its longest wait is the longest time that the loop was blocked, the load of the machine included.
"""

from __future__ import annotations

import asyncio
import json
import random
import string
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator

from benchmarks.claims import report
from benchmarks.openloop import percentile
from benchmarks.service import ServerProcess

_CLIENTS = 2
_MAX_BLOCKED_MS, _MAX_P99_MS = 100.0, 50.0
_MAX_GROWTH = 1.05
_IDS, _COLLECTIONS = 100, 20
"""Documents are replaced again and again, each in its collection, so that memory need not grow."""
_MAX_NODES = 256
_LARGEST = 0.02
"""Fraction of the bodies of documents that have the maximum size."""
_MAX_BODY_BYTES = 64 * 1024 * 1024
_PROBE = """
import http.client, json, select, sys, time
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
waits = []
while not select.select([sys.stdin], [], [], 0.005)[0]:
    start = time.perf_counter()
    connection.request("GET", "/livez")
    connection.getresponse().read()
    waits.append(1_000 * (time.perf_counter() - start))
print(json.dumps(waits))
"""


class LargeRequests:
    """Requests of one seed, as (path, body)."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def next(self) -> tuple[str, bytes]:
        """One request in ten is a write."""
        return self.documents() if self._rng.random() < 0.1 else self.search()

    def search(self) -> tuple[str, bytes]:
        """A search with a large filter, a long query, and much in its response."""
        rng = self._rng
        body: dict[str, object] = {
            "query": self._text(rng.choice([20, 300, 4_096])) or "x",
            "limit": rng.choice([1, 50]),
            "explain": rng.random() < 0.3,
            "neighbors": rng.choice([0, 10]),
        }
        if rng.random() < 0.7:
            collections = [f"c{n}" for n in range(rng.choice([0, 1, 4, _COLLECTIONS]))]
            body["collections"] = collections
            body["filter"] = self._filter(min(_MAX_NODES, 1_024 // max(1, len(collections))) - 2)
        return "/v1/search", json.dumps(body).encode()

    def documents(self) -> tuple[str, bytes]:
        """A body of documents, or of lines that are none."""
        rng = self._rng
        kinds: list[Callable[[], bytes]] = [
            lambda: b"x\n" * rng.randrange(1, 100_000),
            lambda: b"{}\n" * rng.randrange(1, 100_000),
            lambda: self._lines(1, 1_000_000),
            lambda: self._lines(1, 1, title_chars=1_000_000),
            lambda: self._lines(20, 2_000),
            lambda: self._lines(50, 100, self._many_keys),
            lambda: self._lines(20, 100, self._new_keys),
            lambda: self._lines(50, 100, self._long_list),
            lambda: self._lines(20, 100, self._long_values),
        ]
        if rng.random() < _LARGEST:
            kinds = [lambda: (self._lines(8, 1_000_000) + b"\n") * 8]
        return "/v1/documents", rng.choice(kinds)()[:_MAX_BODY_BYTES]

    def _lines(
        self, count: int, chars: int, metadata: Callable[[], dict[str, object]] = dict, title_chars: int = 0
    ) -> bytes:
        lines = []
        for _ in range(count):
            number = self._rng.randrange(_IDS)
            document = {
                "id": str(number),
                "collection": f"c{number % _COLLECTIONS}",
                "title": self._text(title_chars),
                "text": self._text(chars) or "x",
                "metadata": metadata(),
            }
            lines.append(json.dumps(document, ensure_ascii=False))
        return "\n".join(lines).encode()

    def _many_keys(self) -> dict[str, object]:
        return {f"key {self._rng.randrange(1_000)}": self._value() for _ in range(256)}

    def _new_keys(self) -> dict[str, object]:
        """Keys that no other document has; all documents together have more than are allowed."""
        return {self._rng.randbytes(8).hex(): 1 for _ in range(256)}

    def _long_list(self) -> dict[str, object]:
        return {"key 1": [self._rng.uniform(-1e9, 1e9) for _ in range(1_000)]}

    def _long_values(self) -> dict[str, object]:
        return {f"key {number}": self._text(8_192) for number in range(self._rng.randrange(100))}

    def _value(self) -> object:
        rng = self._rng
        return rng.choice([rng.uniform(-1e9, 1e9), rng.randrange(10), self._text(20), True, [self._text(5)] * 3])

    def _text(self, chars: int) -> str:
        rng = self._rng
        word = rng.choice(["A", "a", "The Film", "é", "日本", '"', "x" * 60, "A-", "1.5 ", "\u202e", "and the of"])
        separator = rng.choice([" ", "", ", ", "\n", "-", "."])
        if rng.random() < 0.3:
            return "".join(rng.choices(string.printable, k=chars))
        return (separator.join([word] * chars))[:chars].strip()

    def _filter(self, nodes: int) -> object:
        """A filter that costs at most this many conditions: a range counts as four, and long texts as more."""
        rng = self._rng
        if rng.random() < 0.2:
            return self._nested(max(1, nodes // 30))
        if rng.random() < 0.3:
            values = [self._text(rng.randrange(1, 30)) for _ in range(min(4_096, 60 * nodes))]
            return {"op": "in", "field": "metadata.key 1", "values": values or ["x"]}
        ranges = []
        for _ in range(nodes // 4):
            low = rng.uniform(-1e9, 1e9)
            field = rng.choice(["importance", f"metadata.key {rng.randrange(1_000)}"])
            ranges.append({"op": "range", "field": field, "gte": low, "lt": rng.uniform(low, 1e9)})
        return {"op": rng.choice(["and", "or"]), "filters": ranges}

    def _nested(self, count: int) -> object:
        """Long texts of long fields, below alternating conditions."""
        rng = self._rng
        field = "metadata." + rng.choice("aé\U00010400") * rng.choice([5, 250])
        texts = [{"op": "eq", "field": field, "value": self._text(8_192)} for _ in range(count)]
        nested: dict[str, object] = {"op": "or", "filters": texts}
        for level in range(rng.randrange(14)):
            url = {"op": "eq", "field": "url", "value": str(level)}
            nested = {"op": ("and", "or")[level % 2], "filters": [nested, url]}
        return nested


def observe(server: ServerProcess, admin_key: str, reader_key: str, count: int, seed: int) -> bool:
    """Whether all claims about large requests are true.

    :param count: of requests.
    """
    statuses: Counter[int] = Counter()
    _send(server, admin_key, reader_key, count // 2, seed, statuses)
    before_mib = server.usage()[0]
    probe = subprocess.Popen(
        [sys.executable, "-c", _PROBE, str(server.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    _send(server, admin_key, reader_key, count - count // 2, seed + 1, statuses)
    output, _ = probe.communicate(b"\n")
    after_mib, waits = server.usage()[0], json.loads(output)
    by_thousand = [max(waits[start : start + 1_000]) for start in range(0, len(waits), 1_000)]
    longest, p99 = max(waits), percentile(waits, 0.99)
    shown = ", ".join(f"{status}: {number:,}" for status, number in sorted(statuses.items()))
    server_errors = [status for status in statuses if status >= 500 and status != 503]
    return all(
        [
            report(not server_errors, f"{count:,} requests within the limits of size, none fails", shown),
            report(
                longest < _MAX_BLOCKED_MS,
                f"the event loop is never blocked for {_MAX_BLOCKED_MS:g} ms",
                f"longest wait {longest:.0f} ms; of each 1,000: {', '.join(f'{each:.0f}' for each in by_thousand)}",
            ),
            report(p99 < _MAX_P99_MS, f"nor, at p99, for {_MAX_P99_MS:g} ms", f"{p99:.1f} ms of {len(waits):,} probes"),
            report(
                after_mib < before_mib * _MAX_GROWTH,
                "memory does not grow",
                f"{before_mib:.0f} to {after_mib:.0f} MiB over the second half",
            ),
        ]
    )


def _send(
    server: ServerProcess, admin_key: str, reader_key: str, count: int, seed: int, statuses: Counter[int]
) -> None:
    """Send requests over a few connections."""
    requests = LargeRequests(random.Random(seed))

    async def client(remaining: Iterator[int]) -> None:
        for _ in remaining:
            path, body = requests.next()
            api_key = admin_key if path == "/v1/documents" else reader_key
            statuses[await _post(server.port, path, body, api_key)] += 1

    async def run() -> None:
        remaining = iter(range(count))
        await asyncio.gather(*(client(remaining) for _ in range(_CLIENTS)))

    asyncio.run(run())


async def _post(port: int, path: str, body: bytes, api_key: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {api_key}\r\nconnection: close\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    received = await asyncio.wait_for(reader.read(), 120)
    writer.close()
    return int(received[9:12])
