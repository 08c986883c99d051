"""``make bench-hostile``: schemathesis over our own OpenAPI document, then 100,000 hostile requests.

Those are random, mutated, truncated, deeply nested, or full of what other languages would obey.

No status of 500 or one that we do not have (schemathesis: that the document does not have there), no answer beside its
schema, no growth of memory, no log line that somebody else wrote. Ends with 1 if a promise was broken.
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
from benchmarks.claims import out, say
from benchmarks.openloop import percentile
from benchmarks.service import Running, service
from orchestrator import keys
from orchestrator.api.problems import STATUSES
from tests.orchestrator.api.conform import conforms

_CONNECTIONS = 8
_GROWN = 1.05
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
_WRONG = ("", "Bearer", "Bearer trivium_0_0", "Basic YTpi", "Bearer " + "trivium_" * 500, "Bearer \x7f", "bearer  é")
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
    """Both, one after the other."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--examples", type=int, default=3_000, help="of each operation, at most, of each kind")
    arguments.add_argument("--bodies", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=0)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "keys")
        known = [keys.add(path, name, Scope(), "normal", admin=name == "root") for name in ("root", "reader")]
        settings = {"data_dir": f"{folder}/data", "query_memo": 100, "ranking_memo": 100, "cache_bytes": 262_144}
        with service(settings | {"keys_file": path}, Path(folder, "serve.log")) as running:
            held = [
                _conforms(running.port, chosen.examples, known[0], chosen.seed),
                _fuzzed(running, known, chosen.bodies, chosen.seed),
            ]
    raise SystemExit(0 if all(held) else 1)


def _conforms(port: int, examples: int, key: str, seed: int) -> bool:
    """Whether schemathesis finds nothing; its report is printed if it does."""
    cases, found = conforms(port, examples, key, seed)
    if found:
        out.print(found, markup=False, highlight=False)
    return say(not found, "schemathesis finds nothing, with every check on", f"{cases:,} cases")


def _fuzzed(running: Running, known: Sequence[str], count: int, seed: int) -> bool:
    """Whether nothing that can be sent does any harm."""
    fuzz = Fuzz(running.port, known, random.Random(seed))
    asyncio.run(fuzz.run(count // 5))
    before, lines = running.usage()[0], running.log.read_bytes().count(b"\n")
    asyncio.run(fuzz.run(count - count // 5))
    grown = running.usage()[0]
    told = ", ".join(f"{status}: {number:,}" for status, number in sorted(fuzz.statuses.items()))
    allowed = {200, *STATUSES} - {500, 503}
    written = running.log.read_text("utf-8").splitlines()
    ours = all(isinstance(json.loads(line), dict) for line in written)
    leaked = [key for key in known if key.split("_", 2)[2] in running.log.read_text("utf-8")]
    forged = sum(json.loads(line).get("request_id") == _INJECTED for line in written)
    return all(
        [
            say(set(fuzz.statuses) <= allowed, f"{count:,} requests, no status that may not be", told),
            say(
                not fuzz.unread, "every refusal is a problem in JSON", f"{len(fuzz.unread)} were not {fuzz.unread[:3]}"
            ),
            say(
                grown < before * _GROWN, "memory is flat", f"{before:.0f} to {grown:.0f} MiB over the last four fifths"
            ),
            say(
                ours and not forged and not leaked,
                "each log line is ours, and no key is in one",
                f"{len(written):,} lines, {len(written) - lines:,} since",
            ),
            say(
                percentile(fuzz.took_ms, 0.99) < 1_000,
                "nothing takes long",
                f"p99 {percentile(fuzz.took_ms, 0.99):.0f} ms",
            ),
        ]
    )


class Fuzz:
    """Requests made up by ``dice``, over a few connections; what came back."""

    def __init__(self, port: int, known: Sequence[str], dice: random.Random) -> None:
        self._port, self._known, self._dice = port, known, dice
        self.statuses: Counter[int] = Counter()
        self.unread: list[bytes] = []
        self.took_ms: list[float] = []

    async def run(self, count: int) -> None:
        """Send so many."""
        left = iter(range(count))
        await asyncio.gather(*(self._connection(left) for _ in range(_CONNECTIONS)))

    async def _connection(self, left: Iterator[int]) -> None:
        loop = asyncio.get_running_loop()
        reader = writer = None
        for _ in left:
            if writer is None or writer.is_closing():
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            request, whole = self._request()
            began = loop.time()
            try:
                writer.write(request)
                if not whole:  # the rest never comes
                    writer.write_eof()
                status, body, ends = await asyncio.wait_for(_answer(reader), 30)
            except (ConnectionError, asyncio.IncompleteReadError):
                writer.close()
                if whole:
                    self.statuses[0] += 1
                continue
            self.took_ms.append((loop.time() - began) * 1_000)
            self.statuses[status] += 1
            if status >= 400 and b'"status":%d' % status not in body:
                self.unread.append(body[:100])
            if ends or not whole:
                writer.close()

    def _request(self) -> tuple[bytes, bool]:
        """A request, and whether all of it."""
        dice = self._dice
        path, method = dice.choices(
            [
                ("/v1/search", "POST"),
                ("/v1/documents", "POST"),
                ("/v1/documents/" + self._id(), "GET"),
                ("/v1/documents/" + self._id(), "DELETE"),
            ],
            [90, 4, 5, 1],
        )[0]
        body = b"" if method != "POST" else self._body(_SEARCH if path == "/v1/search" else _DOCUMENT)
        name = dice.choice(["x-request-id", "content-type", "accept", "origin-of-this", "x" * 50])
        value = dice.choice(["a", "application/json", _INJECTED + "\x7f", "é" * 20, "%0d%0a", "{}", "a" * 2_000])
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n{name}: {value}\r\n"
        head += f"authorization: {dice.choices([self._key(), dice.choice(_WRONG)], [95, 5])[0]}\r\n"
        if body and dice.random() < 0.05:
            return (head + "transfer-encoding: chunked\r\n\r\n").encode() + self._chunks(body), True
        request = (head + f"content-length: {len(body)}\r\n\r\n").encode()
        if body and dice.random() < 0.01:
            return request + body[: dice.randrange(len(body))], False
        return request + body, True

    def _key(self) -> str:
        return f"Bearer {self._dice.choices(self._known, [4, 1])[0]}"

    def _chunks(self, body: bytes) -> bytes:
        """In pieces, with what may stand beside and behind them."""
        size = self._dice.randrange(1, len(body) + 1)
        pieces = [body[start : start + size] for start in range(0, len(body), size)][:200]
        beside = self._dice.choice([b"", b";a=b", b";" + b"x" * 500])
        behind = self._dice.choice([b"", b"x: y\r\n", b"content-length: 5\r\n", b"authorization: Bearer x\r\n"])
        return b"".join(b"%x%s\r\n%s\r\n" % (len(each), beside, each) for each in pieces) + b"0\r\n" + behind + b"\r\n"

    def _id(self) -> str:
        return self._dice.choice(
            ["a", "%0a", "%00", "%ff", "a/b", "..%2f..%2f", "%22%0A%7B%7D", "a" * 600, "%E2%80%AE"]
        )

    def _body(self, valid: dict[str, object]) -> bytes:
        dice = self._dice
        match dice.randrange(8):
            case 0:
                return dice.randbytes(dice.randrange(200))
            case 1:
                written = json.dumps(valid).encode()
                return written[: dice.randrange(len(written))]
            case 2:
                changed = bytearray(json.dumps(valid).encode())
                for _ in range(dice.randrange(1, 6)):
                    changed[dice.randrange(len(changed))] = dice.randrange(256)
                return bytes(changed)
            case 3:
                return dice.choice([b"[", b'{"a":', b'{"filter":{"op":"not","filter":']) * dice.randrange(1, 3_000)
            case 4:
                return json.dumps(dice.choice(_VALUES)).encode()
            case 5:
                nested: object = {"op": "exists", "field": "tags"}
                for _ in range(dice.randrange(40)):
                    nested = (
                        {"op": "not", "filter": nested}
                        if dice.random() < 0.5
                        else {"op": "or", "filters": [nested] * 2}
                    )
                    if len(json.dumps(nested)) > 20_000:
                        break
                return json.dumps(valid | {"filter": nested}).encode()
            case 6:
                return json.dumps(valid | {dice.choice([*valid, _LINE]): dice.choice(_VALUES)}).encode()
            case _:
                return json.dumps({name: dice.choice(_VALUES) for name in dice.sample(sorted(valid), 3)}).encode()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes, bool]:
    """Status, body, and whether the connection ends with it."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    body = await reader.readexactly(int(length[1])) if length else b""
    return int(head[9:12]), body, b"connection: close" in head.lower()


if __name__ == "__main__":
    main()
