"""``make bench-hostile``: schemathesis with the OpenAPI document of the service, then 100,000 hostile requests, then
6,000 that are as large as they may be, then clients that pipeline, flood, read slowly, and send slowly.

The hostile requests are random, mutated, truncated, deeply nested, or contain statements of other languages.

Claims: no status 500 and no undocumented status, no response that its schema does not allow, no growth of memory, no
log line that a request wrote, no blocked event loop. Exit code 1 if one is false.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from adapters import Scope
from benchmarks import hostile_clients
from benchmarks.claims import out, report
from benchmarks.large_requests import observe
from benchmarks.openloop import percentile
from benchmarks.service import ServerProcess, start_service
from orchestrator.auth.key_admin import add_key
from orchestrator.http.errors import STATUSES
from tests.orchestrator.http.conform import conforms

_CONNECTIONS = 8
_MAX_GROWTH = 1.05
_INJECTED = "forged-by-a-request"
_LINE = f'\n{{"time":"2026-01-01","request_id":"{_INJECTED}","status":200}}\n'
_SEARCH = {
    "query": "who directed the film",
    "mode": "hybrid",
    "limit": 10,
    "collections": ["documents"],
    "fusion": "rrf(k=60)",
    "filter": {
        "op": "and",
        "filters": [{"op": "in", "field": "tags", "values": ["a", "b"]}, {"op": "exists", "field": "url"}],
    },
    "weights": {"vector": 1, "graph": 2},
    "boosts": {"recency": True},
    "collapse": "window",
    "neighbors": 1,
    "explain": True,
}
_INVALID_KEYS = (
    "",
    "Bearer",
    "Bearer trivium_0_0",
    "Basic YTpi",
    "Bearer " + "trivium_" * 500,
    "Bearer \x7f",
    "bearer  é",
)
_DOCUMENT = {"id": "a", "text": "some text", "title": "Title", "created_at": "2026-01-31T12:00:00Z", "tags": ["x"]}
_VALUES = (
    None,
    True,
    -1,
    0,
    2**70,
    1e308,
    "",
    " ",
    "\x00",
    "\ud800",
    "a" * 5_000,
    _LINE,
    "' OR 1=1 --",
    "{{7*7}}",
    "../../etc/passwd",
    "\u202e",
    [],
    {},
    [[]],
    {"op": "not"},
    [None] * 50,
    {"$ne": 1},
    "MATCH (n) DETACH DELETE n",
    "*:*",
    "\r\nX: y",
)


def main() -> None:
    """Run schemathesis, then send the hostile requests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=3_000, help="maximum number for each operation and kind")
    parser.add_argument("--bodies", type=int, default=100_000, help="number of hostile requests")
    parser.add_argument("--large", type=int, default=6_000, help="number of requests as large as they may be")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "keys")
        api_keys = [add_key(path, name, Scope(), "normal", admin=name == "root") for name in ("root", "reader")]
        settings = {"data_dir": f"{folder}/data", "cache_bytes": 262_144, "keys_file": path, "upkeep_interval_s": 0}
        with start_service(settings, Path(folder, "serve.log")) as server:
            passed = [
                _schemathesis(server.port, arguments.examples, api_keys[0], arguments.seed),
                _fuzz(server, api_keys, arguments.bodies, arguments.seed),
                observe(server, *api_keys, arguments.large, arguments.seed),
            ]
        passed.append(hostile_clients.observe(Path(folder, "clients")))
    raise SystemExit(0 if all(passed) else 1)


def _schemathesis(port: int, examples: int, api_key: str, seed: int) -> bool:
    """Whether schemathesis finds no error; its report is printed if it does."""
    cases, errors = conforms(port, examples, api_key, seed)
    if errors:
        out.print(errors, markup=False, highlight=False)
    return report(not errors, "schemathesis finds no error, with every check on", f"{cases:,} cases")


def _fuzz(server: ServerProcess, api_keys: Sequence[str], count: int, seed: int) -> bool:
    """Whether all claims about hostile requests are true."""
    fuzzer = Fuzzer(server.port, api_keys, random.Random(seed))
    asyncio.run(fuzzer.run(count // 5))
    before_mib, lines_before = server.usage()[0], server.log.read_bytes().count(b"\n")
    asyncio.run(fuzzer.run(count - count // 5))
    after_mib = server.usage()[0]
    statuses = ", ".join(f"{status}: {number:,}" for status, number in sorted(fuzzer.statuses.items()))
    allowed = {200, *STATUSES} - {500, 503}
    log = server.log.read_text("utf-8")
    lines = log.rstrip("\n").split("\n")
    objects = [_object(line) for line in lines]
    foreign = [line for line, each in zip(lines, objects, strict=True) if each is None]
    leaked = [api_key for api_key in api_keys if api_key.split("_", 2)[2] in log]
    forged = sum(each["request_id"] == _INJECTED for each in objects if each and "request_id" in each)
    p99_ms = percentile(fuzzer.latencies_ms, 0.99)
    not_problems = fuzzer.not_problems
    return all(
        [
            report(set(fuzzer.statuses) <= allowed, f"{count:,} requests, only documented statuses", statuses),
            report(
                not not_problems,
                "every error is a problem in JSON",
                f"{len(not_problems)} were not {not_problems[:3]}",
            ),
            report(
                after_mib < before_mib * _MAX_GROWTH,
                "memory does not grow",
                f"{before_mib:.0f} to {after_mib:.0f} MiB over the last four fifths",
            ),
            report(
                not foreign and not forged and not leaked,
                "the service wrote each log line, and no key is in one",
                f"{len(lines):,} lines, {len(lines) - lines_before:,} over the last four fifths; "
                f"{len(foreign)} not of its form {foreign[:3]}",
            ),
            report(p99_ms < 1_000, "no request takes long", f"p99 {p99_ms:.0f} ms"),
        ]
    )


def _object(line: str) -> dict[str, object] | None:
    """A line of the log; ``None`` if the service did not write it."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class Fuzzer:
    """Sends random requests over a few connections."""

    def __init__(self, port: int, api_keys: Sequence[str], rng: random.Random) -> None:
        self._port, self._api_keys, self._rng = port, api_keys, rng
        self.statuses: Counter[int] = Counter()
        self.not_problems: list[bytes] = []
        self.latencies_ms: list[float] = []

    async def run(self, count: int) -> None:
        """Send a number of requests."""
        remaining = iter(range(count))
        await asyncio.gather(*(self._connection(remaining) for _ in range(_CONNECTIONS)))

    async def _connection(self, remaining: Iterator[int]) -> None:
        loop = asyncio.get_running_loop()
        reader = writer = None
        for _ in remaining:
            if writer is None or writer.is_closing():
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            request, is_complete = self._request()
            start = loop.time()
            try:
                writer.write(request)
                if not is_complete:  # the rest is never sent
                    writer.write_eof()
                status, body, is_last = await asyncio.wait_for(_read_response(reader), 30)
            except (ConnectionError, asyncio.IncompleteReadError):
                writer.close()
                if is_complete:
                    self.statuses[0] += 1
                continue
            self.latencies_ms.append((loop.time() - start) * 1_000)
            self.statuses[status] += 1
            if status >= 400 and b'"status":%d' % status not in body:
                self.not_problems.append(body[:100])
            if is_last or not is_complete:
                writer.close()

    def _request(self) -> tuple[bytes, bool]:
        """A request, and whether it is complete."""
        rng = self._rng
        path, method = rng.choices(
            [
                ("/v1/search", "POST"),
                ("/v1/documents", "POST"),
                ("/v1/documents/" + self._id(), "GET"),
                ("/v1/documents/" + self._id(), "DELETE"),
            ],
            [90, 4, 5, 1],
        )[0]
        body = b"" if method != "POST" else self._body(_SEARCH if path == "/v1/search" else _DOCUMENT)
        name = rng.choice(["x-request-id", "content-type", "accept", "origin-of-this", "x" * 50])
        value = rng.choice(["a", "application/json", _INJECTED + "\x7f", "é" * 20, "%0d%0a", "{}", "a" * 2_000])
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n{name}: {value}\r\n"
        head += f"authorization: {rng.choices([self._api_key(), rng.choice(_INVALID_KEYS)], [95, 5])[0]}\r\n"
        if body and rng.random() < 0.05:
            return (head + "transfer-encoding: chunked\r\n\r\n").encode() + self._chunks(body), True
        request = (head + f"content-length: {len(body)}\r\n\r\n").encode()
        if body and rng.random() < 0.01:
            return request + body[: rng.randrange(len(body))], False
        return request + body, True

    def _api_key(self) -> str:
        return f"Bearer {self._rng.choices(self._api_keys, [4, 1])[0]}"

    def _chunks(self, body: bytes) -> bytes:
        """Chunked transfer coding, with the chunk extensions and trailers that it allows."""
        size = self._rng.randrange(1, len(body) + 1)
        chunks = [body[start : start + size] for start in range(0, len(body), size)][:200]
        extension = self._rng.choice([b"", b";a=b", b";" + b"x" * 500])
        trailer = self._rng.choice([b"", b"x: y\r\n", b"content-length: 5\r\n", b"authorization: Bearer x\r\n"])
        encoded = b"".join(b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk) for chunk in chunks)
        return encoded + b"0\r\n" + trailer + b"\r\n"

    def _id(self) -> str:
        return self._rng.choice(["a", "%0a", "%00", "%ff", "a/b", "..%2f..%2f", "%22%0A%7B%7D", "a" * 600, "%E2%80%AE"])

    def _body(self, valid: dict[str, object]) -> bytes:
        rng = self._rng
        match rng.randrange(8):
            case 0:
                return rng.randbytes(rng.randrange(200))
            case 1:
                encoded = json.dumps(valid).encode()
                return encoded[: rng.randrange(len(encoded))]
            case 2:
                mutated = bytearray(json.dumps(valid).encode())
                for _ in range(rng.randrange(1, 6)):
                    mutated[rng.randrange(len(mutated))] = rng.randrange(256)
                return bytes(mutated)
            case 3:
                return rng.choice([b"[", b'{"a":', b'{"filter":{"op":"not","filter":']) * rng.randrange(1, 3_000)
            case 4:
                return json.dumps(rng.choice(_VALUES)).encode()
            case 5:
                return json.dumps(valid | {"filter": self._nested_filter()}).encode()
            case 6:
                return json.dumps(valid | {rng.choice([*valid, _LINE]): rng.choice(_VALUES)}).encode()
            case _:
                return json.dumps({name: rng.choice(_VALUES) for name in rng.sample(sorted(valid), 3)}).encode()

    def _nested_filter(self) -> object:
        nested: object = {"op": "exists", "field": "tags"}
        for _ in range(self._rng.randrange(40)):
            is_negation = self._rng.random() < 0.5
            nested = {"op": "not", "filter": nested} if is_negation else {"op": "or", "filters": [nested] * 2}
            if len(json.dumps(nested)) > 20_000:
                break
        return nested


async def _read_response(reader: asyncio.StreamReader) -> tuple[int, bytes, bool]:
    """Status, body, and whether the server closes the connection after it."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    body = await reader.readexactly(int(length[1])) if length else b""
    return int(head[9:12]), body, b"connection: close" in head.lower()


if __name__ == "__main__":
    main()
