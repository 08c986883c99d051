"""The service as a process, reached through a socket: requests that are too large or too slow, shutdown under load."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from adapters import Scope
from orchestrator.auth.key_admin import add_key
from tests.orchestrator.http.conform import conforms
from tests.orchestrator.http.helpers import response_statuses
from tests.orchestrator.served import Serve, environment
from tests.secrets import register_secret


@pytest.fixture
def env(tmp_path: Path, model_dir: Path) -> dict[str, str]:
    return environment(data_dir=tmp_path / "data", model_dir=model_dir, client_timeout_ms=500)


@pytest.fixture(scope="module")
def port(serve: Serve, tmp_path_factory: pytest.TempPathFactory, model_dir: Path) -> Iterator[int]:
    """The port of one service for all tests that send it no valid search."""
    settings = environment(data_dir=tmp_path_factory.mktemp("data"), model_dir=model_dir, client_timeout_ms=500)
    with serve(settings) as (_, address):
        yield urlsplit(address).port or 0


def exchange(port: int, *parts: bytes) -> bytes:
    """Send some data; everything that is received until the service closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the service has closed the connection, and may have sent the reason
        received = b""
        try:
            while part := connection.recv(65_536):
                received += part
        except ConnectionResetError:
            pass
        return received


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
        "half of the headers",
        "a trailer that is not allowed",
        "no chunk",
        "half a body",
    ],
)
def test_data_that_is_no_request_is_refused_with_a_problem(port: int, parts: tuple[bytes, ...], status: int) -> None:
    head, _, body = exchange(port, *parts).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"application/problem+json" in head.lower()
    assert json.loads(body)["status"] == status


LIVEZ = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
CHUNKED = b"POST /nowhere HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("parts", "statuses"),
    [
        ((), [408]),
        ((CHUNKED, b"5\r\nhello"), [404]),
        ((b"POST /livez HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n1",), [405]),
        ((b"GET /livez HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n1",), [200]),
        ((LIVEZ + b"GET /livez HTTP/1.1\r\nhost:",), [200]),
    ],
    ids=[
        "nothing",
        "half of chunks",
        "405",
        "a body of a GET",
        "half of a request behind another",
    ],
)
def test_a_connection_is_closed_if_the_rest_of_a_request_does_not_arrive(
    port: int, parts: tuple[bytes, ...], statuses: list[int]
) -> None:
    start = time.monotonic()
    received = exchange(port, *parts)
    assert time.monotonic() - start < 8
    assert response_statuses(received) in (statuses, [*statuses, 408])


def test_the_trailer_of_a_body_is_bounded(port: int) -> None:
    """A search with a trailer without end: it is not buffered."""
    start = time.monotonic()
    received = exchange(port, SEARCH_IN_CHUNKS, b"2\r\n{}\r\n0\r\nx: ", *[b"a" * 65_536] * 200)
    assert time.monotonic() - start < 4
    assert received.count(b"HTTP/1.1") <= 1


def test_a_trailer_is_not_a_header(port: int) -> None:
    """The headers come in one write with the request, and are read when all of it was parsed."""
    head = b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n"
    trailer = b"2\r\n{}\r\n0\r\nx-request-id: of-the-trailer\r\n\r\n"
    received = exchange(port, head + b"x-request-id: of-the-header\r\n\r\n" + trailer)
    assert b"x-request-id: of-the-header\r\n" in received
    assert b"of-the-trailer" not in received


def test_a_request_behind_a_large_body_is_not_part_of_it(port: int) -> None:
    """One write has a large body and the beginning of the next request, which the client has to send again."""
    body = json.dumps({"query": "a", "timeout_ms": 10_000, "collections": ["x" * 500] * 20}).encode()
    body += b" " * 100_000
    search = b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    received = exchange(port, search + LIVEZ[:30], LIVEZ[30:])
    assert response_statuses(received) == [200]
    assert b"connection: close" in received


def test_a_path_with_an_additional_slash_does_not_exist_and_is_not_redirected(port: int) -> None:
    received = exchange(port, b"GET /livez/ HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 404 ")
    assert b"evil" not in received


def test_the_limit_of_headers_counts_for_each_request_of_a_connection(port: int) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        for _ in range(10):
            connection.request("GET", "/livez", headers={"x": "a" * 20_000})
            assert connection.getresponse().read() == b'{"live":true}'


def test_every_response_to_a_generated_request_is_as_documented(
    serve: Serve, env: dict[str, str], tmp_path: Path
) -> None:
    """A small version of ``make bench-hostile``, with longer time limits: what a busy machine cannot answer in time is
    reported with status 503 as documented, which is an error to schemathesis.
    """
    path = tmp_path / "keys"
    key = register_secret(add_key(path, "root", Scope(), "restricted", admin=True))
    limits = {
        "TRIVIUM_CLIENT_TIMEOUT_MS": "30000",
        "TRIVIUM_REQUEST_TIMEOUT_MS": "3000",
        "TRIVIUM_SOURCE_TIMEOUT_MS": "3000",
    }
    with serve(env | limits | {"TRIVIUM_KEYS_FILE": str(path)}) as (_, address):
        cases, report = conforms(urlsplit(address).port or 0, examples=15, key=key)
    assert not report, report
    assert cases > 500


def test_with_every_source_down_the_service_is_alive_not_ready_and_names_each_source(
    serve: Serve, env: dict[str, str]
) -> None:
    schemes = {"VECTOR": "qdrant+http", "KEYWORD": "opensearch+http", "GRAPH": "bolt"}
    env |= {f"TRIVIUM_{name}": f"{scheme}://127.0.0.1:1" for name, scheme in schemes.items()}
    with serve(env, until="/livez") as (_, address):

        def request(method: str, path: str, body: str | None = None) -> tuple[int, str | None, dict[str, Any]]:
            with closing(http.client.HTTPConnection("127.0.0.1", urlsplit(address).port, timeout=20)) as connection:
                connection.request(method, path, body)
                response = connection.getresponse()
                return response.status, response.headers["retry-after"], json.loads(response.read())

        for mode in ("auto", "hybrid"):
            status, retry, error = request("POST", "/v1/search", json.dumps({"query": "alpha", "mode": mode}))
            assert (status, retry, error["title"]) == (503, "1", "Service Unavailable")
            assert sorted(each.partition(":")[0] for each in error["errors"]) == ["graph", "keyword", "vector"]
        status, _, ready = request("GET", "/readyz")
        assert (status, ready["ready"], sorted(ready["sources"])) == (503, False, ["graph", "keyword", "vector"])
        assert request("GET", "/livez") == (200, None, {"live": True})


class Load:
    """Clients that search without a pause, and one that watches readiness; ``outcomes`` counts what they see."""

    def __init__(self, port: int) -> None:
        self.outcomes: Counter[str] = Counter()
        self._port = port
        self._unready = threading.Event()
        self._responses = threading.Semaphore(0)
        searching = [threading.Thread(target=self._search, args=(number,)) for number in range(6)]
        self._threads = [*searching, threading.Thread(target=self._watch_readiness)]

    def start(self, responses: int) -> None:
        """Return when so many searches have a response."""
        for thread in self._threads:
            thread.start()
        for _ in range(responses):
            assert self._responses.acquire(timeout=30)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(30)

    def _search(self, number: int) -> None:
        """One client: until the service has stopped, and on one connection for as long as it is open."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        body = json.dumps({"query": f"a question {number}", "timeout_ms": 5_000})
        while not self._unready.is_set():  # then it goes elsewhere, like a load balancer
            try:
                connection.connect()
            except ConnectionRefusedError:
                self.outcomes["refused"] += 1
                return
            is_open = True
            while is_open:
                try:
                    connection.request("POST", "/v1/search", body)
                    response = connection.getresponse()
                    response.read()
                except (OSError, http.client.HTTPException) as error:
                    self.outcomes[f"lost: {error!r}"] += 1
                    return
                self.outcomes[str(response.status)] += 1
                self._responses.release()
                is_open = response.headers.get("connection") != "close"
                time.sleep(0.01)  # the rate of the load
            connection.close()

    def _watch_readiness(self) -> None:
        while not self._unready.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
            connection.request("GET", "/readyz")
            response = connection.getresponse()
            if json.loads(response.read()).get("draining"):
                self.outcomes["not ready"] += response.status == 503
                self._unready.set()
            connection.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_under_load_loses_no_request_and_readiness_fails_first(
    serve: Serve, env: dict[str, str], workers: int
) -> None:
    env |= {"TRIVIUM_SHUTDOWN_GRACE_MS": "10000"}  # drains for one second
    with serve(env, "--workers", str(workers)) as (process, address):
        load = Load(urlsplit(address).port or 0)
        load.start(responses=51)
        start = time.monotonic()
        process.send_signal(signal.SIGTERM)
        load.join()
        process.wait(30)
        assert time.monotonic() - start < 12
    outcomes = load.outcomes
    assert outcomes["not ready"] == 1
    assert not [each for each in outcomes if each.startswith("lost")], outcomes
    assert set(outcomes) <= {"200", "refused", "not ready"}, outcomes
    assert outcomes["200"] > 50


def test_workers_that_take_longer_to_start_than_a_running_one_may_be_silent_become_ready(
    serve: Serve, env: dict[str, str], tmp_path: Path
) -> None:
    """As on a busy machine: each process that is started imports its packages for twelve seconds longer."""
    slow = "import sys, time\nif '--multiprocessing-fork' in sys.argv: time.sleep(12)\n"
    (tmp_path / "sitecustomize.py").write_text(slow)
    with serve(env | {"PYTHONPATH": str(tmp_path)}, "--workers", "2") as (process, _):  # it is ready
        assert process.poll() is None
