"""A client of ``POST /v1/search/batch`` as a process of its own: it sends and reads at the same time."""

from __future__ import annotations

import argparse
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_LINE = re.compile(rb'^\{"line":(\d+),"status":(\d+)')
_CHUNK_LINES = 32
_HEAD = (
    b"POST /v1/search/batch HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/x-ndjson\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def main() -> None:
    """Search for each line of a file, again and again, and print what came back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--queries", type=Path, required=True, help="a query on each line")
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--name", required=True, help="added to each query, so that no response is cached")
    parser.add_argument("--pause-every", type=int, default=0, help="lines after which it stops reading")
    parser.add_argument("--pause-s", type=float, default=0.0)
    arguments = parser.parse_args()
    queries = arguments.queries.read_text("utf-8").splitlines()
    start, in_order, failed, last = time.perf_counter(), True, 0, 0
    with socket.create_connection(("127.0.0.1", arguments.port)) as connection:
        sender = threading.Thread(target=_send, args=(connection, queries, arguments.count, arguments.name))
        sender.start()
        for number, status in _received(connection):
            in_order &= number == last + 1
            failed += status != 200  # of HTTP
            last = number
            if arguments.pause_every and number % arguments.pause_every == 0:
                time.sleep(arguments.pause_s)
        sender.join()
    seconds = time.perf_counter() - start
    print(json.dumps({"lines": last, "failed": failed, "in_order": in_order, "seconds": seconds}))


def _send(connection: socket.socket, queries: list[str], count: int, name: str) -> None:
    connection.sendall(_HEAD)
    for first in range(0, count, _CHUNK_LINES):
        numbers = range(first, min(first + _CHUNK_LINES, count))
        lines = (json.dumps({"query": f"{queries[n % len(queries)]} {name} {n}", "timeout_ms": 5_000}) for n in numbers)
        content = "".join(f"{line}\n" for line in lines).encode()
        connection.sendall(b"%x\r\n%b\r\n" % (len(content), content))
    connection.sendall(b"0\r\n\r\n")


def _received(connection: socket.socket) -> Iterator[tuple[int, int]]:
    """The number and the status of each line. Chunks are lines, so only whole lines begin with a brace."""
    with connection.makefile("rb", 262_144) as response:
        for line in response:
            if found := _LINE.match(line):
                yield int(found[1]), int(found[2])
            elif line == b"0\r\n":
                return


if __name__ == "__main__":
    main()
