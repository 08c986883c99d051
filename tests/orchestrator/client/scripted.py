"""A server that answers with prepared bytes: whole responses, parts of one, or nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

READY = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 18\r\nconnection: close\r\n\r\n"
    b'{"collections":[]}'
)


def refusing(status: str, retry_after: str = "") -> bytes:
    """A problem with this status."""
    number = int(status.split(maxsplit=1)[0])
    body = b'{"title":"t","status":%d,"detail":"as it was told"}' % number
    header = f"retry-after: {retry_after}\r\n" if retry_after else ""
    head = f"HTTP/1.1 {status}\r\n{header}content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body


@contextmanager
def scripted(answers: Sequence[bytes | None]) -> Iterator[tuple[str, list[bytes]]]:
    """Answers the requests in turn, the last one from then on: its address, and the requests that it received.

    ``None`` answers nothing, and keeps the connection open.
    """
    received: list[bytes] = []
    kept: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                received.append(_request(connection))
                answer = answers[min(len(received), len(answers)) - 1]
                if answer is None:
                    kept.append(connection)
                    continue
                with connection:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", received
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            for connection in kept:
                connection.close()


def _request(connection: socket.socket) -> bytes:
    """A whole request, by its content length."""
    content = b""
    while b"\r\n\r\n" not in content:
        part = connection.recv(65_536)
        if not part:
            return content
        content += part
    head, _, body = content.partition(b"\r\n\r\n")
    lengths = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while lengths and len(body) < lengths[0]:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body
