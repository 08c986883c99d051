"""The service as a process, spoken to over a socket: heads that are too much, an end under load."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from adapters import Scope
from orchestrator import keys
from tests.orchestrator.api.conform import conforms
from tests.orchestrator.served import environment, serving
from tests.secrets import keep_out


@pytest.fixture
def env(tmp_path: Path, model_dir: Path) -> dict[str, str]:
    return environment(data_dir=tmp_path / "data", model_dir=model_dir, receive_timeout_ms=500)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory, model_dir: Path) -> Iterator[int]:
    """Of one service for all who only send it what is no request."""
    settings = environment(data_dir=tmp_path_factory.mktemp("data"), model_dir=model_dir, receive_timeout_ms=500)
    with serving(settings) as (_, address):
        yield urlsplit(address).port or 0


def sent(port: int, *parts: bytes) -> bytes:
    """What comes back until the other side hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has had enough, and may have said so
        answer = b""
        try:
            while part := connection.recv(65_536):
                answer += part
        except ConnectionResetError:
            pass
        return answer


SEARCH_IN_CHUNKS = b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ((b"GET /livez HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 40_000 + b"\r\n\r\n",), 431),
        ((b"GET /livez HTTP/1.1\r\nhost: localhost\r\nx: ", *[b"a" * 8_000] * 16), 431),
        ((b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",), 431),
        ((b"GET /livez HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",), 431),
        ((b"nonsense\r\n\r\n",), 400),
        ((b"GET /livez HTTP/1.1\r\nhost: localhost\r\n",), 408),
        ((SEARCH_IN_CHUNKS, b"2\r\n{}\r\n0\r\ncontent-length: 5\r\n\r\n"), 400),
        ((SEARCH_IN_CHUNKS, b"2\r\n{}\r\nnonsense\r\n"), 400),
        ((b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 10\r\n\r\n{",), 408),
    ],
    ids=[
        "one header",
        "a header without end",
        "path",
        "many headers",
        "not HTTP",
        "half a head",
        "a trailer that may not be",
        "no chunk",
        "half a body",
    ],
)
def test_what_is_no_request_is_refused_as_a_problem(port: int, parts: tuple[bytes, ...], status: int) -> None:
    answer = sent(port, *parts)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"application/problem+json" in head.lower()
    assert json.loads(body)["status"] == status


LIVEZ = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
CHUNKED = b"POST /nowhere HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("parts", "statuses"),
    [
        ((), [408]),
        ((LIVEZ, b"\r\n"), [200]),
        ((LIVEZ + b"\r\n\r\n",), [200]),
        ((CHUNKED, b"5\r\nhello"), [404]),
        ((b"POST /livez HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n1",), [405]),
        ((b"GET /livez HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n1",), [200]),
        ((LIVEZ + b"GET /livez HTTP/1.1\r\nhost:",), [200, 408]),
    ],
    ids=[
        "nothing",
        "a blank line",
        "blank lines at once",
        "half of chunks",
        "405",
        "a body nobody asked for",
        "pipelined",
    ],
)
def test_no_connection_is_held_by_what_does_not_come(port: int, parts: tuple[bytes, ...], statuses: list[int]) -> None:
    began = time.monotonic()
    answer = sent(port, *parts)
    assert time.monotonic() - began < 8  # five seconds is what an idle connection has
    told = [int(each[:3]) for each in answer.split(b"HTTP/1.1 ")[1:]]
    assert told in (statuses, [*statuses, 408])


def test_what_follows_a_body_is_bounded_too(port: int) -> None:
    """A search without an end to its trailer: no memory is kept for it."""
    began = time.monotonic()
    answer = sent(port, SEARCH_IN_CHUNKS, b"2\r\n{}\r\n0\r\nx: ", *[b"a" * 65_536] * 200)
    assert time.monotonic() - began < 4
    assert answer.count(b"HTTP/1.1") <= 1


def test_a_request_behind_another_is_no_part_of_it(port: int) -> None:
    """In one write: a large body, and the beginning of the next request."""
    body = json.dumps({"query": "a", "timeout_ms": 10_000, "collections": ["x" * 500] * 20}).encode()
    body += b" " * 100_000
    search = b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    answer = sent(port, search + LIVEZ[:30], LIVEZ[30:])
    assert [int(each[:3]) for each in answer.split(b"HTTP/1.1 ")[1:]][:2] == [200, 200]


def test_connections_are_counted(env: dict[str, str]) -> None:
    with (
        serving(env | {"TRIVIUM_MAX_CONNECTIONS": "3", "TRIVIUM_RECEIVE_TIMEOUT_MS": "5000"}) as (_, address),
        ExitStack() as held,
    ):
        port = urlsplit(address).port or 0
        time.sleep(0.2)  # until the last of those that asked whether it is ready is gone
        for _ in range(3):
            held.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert sent(port, LIVEZ).startswith(b"HTTP/1.1 503 ")
        held.close()
        deadline = time.monotonic() + 5
        while not sent(port, LIVEZ.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")).startswith(b"HTTP/1.1 200 "):
            assert time.monotonic() < deadline


def test_a_path_with_a_slash_too_much_is_none_and_nobody_is_sent_elsewhere(port: int) -> None:
    answer = sent(port, b"GET /livez/ HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b"evil" not in answer


def test_many_requests_on_one_connection_count_each_for_itself(port: int) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        for _ in range(10):
            connection.request("GET", "/livez", headers={"x": "a" * 20_000})
            assert connection.getresponse().read() == b'{"live":true}'


def test_nothing_that_schemathesis_makes_up_is_answered_otherwise_than_documented(
    env: dict[str, str], tmp_path: Path
) -> None:
    """A taste of ``make bench-hostile``."""
    path = tmp_path / "keys"
    key = keep_out(keys.add(path, "root", Scope(), "restricted", admin=True))
    with serving(env | {"TRIVIUM_RECEIVE_TIMEOUT_MS": "30000", "TRIVIUM_KEYS_FILE": str(path)}) as (_, address):
        cases, found = conforms(urlsplit(address).port or 0, examples=15, key=key)
    assert not found, found
    assert cases > 500


def test_with_every_source_down_it_lives_is_not_ready_and_names_each(env: dict[str, str]) -> None:
    nowhere = {"VECTOR": "qdrant+http", "KEYWORD": "opensearch+http", "GRAPH": "bolt"}
    env |= {f"TRIVIUM_{name}": f"{scheme}://127.0.0.1:1" for name, scheme in nowhere.items()}
    with serving(env, until="/livez") as (_, address):

        def ask(method: str, path: str, body: str | None = None) -> tuple[int, str | None, dict[str, Any]]:
            with closing(http.client.HTTPConnection("127.0.0.1", urlsplit(address).port, timeout=20)) as connection:
                connection.request(method, path, body)
                answer = connection.getresponse()
                return answer.status, answer.headers["retry-after"], json.loads(answer.read())

        for mode in ("auto", "hybrid"):
            status, retry, told = ask("POST", "/v1/search", json.dumps({"query": "alpha", "mode": mode}))
            assert (status, retry, told["title"]) == (503, "1", "service unavailable")
            assert sorted(each.partition(":")[0] for each in told["errors"]) == ["graph", "keyword", "vector"]
        status, _, ready = ask("GET", "/readyz")
        assert (status, ready["ready"], sorted(ready["sources"])) == (503, False, ["graph", "keyword", "vector"])
        assert ask("GET", "/livez") == (200, None, {"live": True})


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_under_load_loses_nothing_and_readiness_goes_first(env: dict[str, str], workers: int) -> None:
    env |= {"TRIVIUM_DRAIN_MS": "1500", "TRIVIUM_GRACE_MS": "10000"}
    outcomes: Counter[str] = Counter()
    unready = threading.Event()
    with serving(env, "--workers", str(workers)) as (process, address):
        port = urlsplit(address).port or 0

        def ask(number: int) -> None:
            """One caller: asks until the service is gone, on one connection for as long as it may."""
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            body = json.dumps({"query": f"a question {number}", "timeout_ms": 5_000})
            while True:
                try:
                    connection.connect()
                except ConnectionRefusedError:
                    outcomes["refused"] += 1
                    return
                keeps = True
                while keeps:
                    try:
                        connection.request("POST", "/v1/search", body)
                        answer = connection.getresponse()
                        answer.read()
                    except (OSError, http.client.HTTPException) as error:
                        outcomes[f"lost: {error!r}"] += 1
                        return
                    outcomes[str(answer.status)] += 1
                    keeps = answer.headers.get("connection") != "close"
                    time.sleep(0.01)
                connection.close()
                if unready.is_set():
                    return  # as a balancer does, which has been told

        def watch() -> None:
            while not unready.is_set():
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/readyz")
                answer = connection.getresponse()
                if json.loads(answer.read()).get("draining"):
                    outcomes["not ready"] += answer.status == 503
                    unready.set()
                connection.close()

        callers = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
        watcher = threading.Thread(target=watch)
        for thread in (*callers, watcher):
            thread.start()
        time.sleep(1.0)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        for thread in (*callers, watcher):
            thread.join(30)
        process.wait(30)
        assert time.monotonic() - began < 12
    assert outcomes["not ready"] == 1
    assert not [each for each in outcomes if each.startswith("lost")], outcomes
    assert set(outcomes) <= {"200", "refused", "not ready"}, outcomes
    assert outcomes["200"] > 50
