"""Two instances behind HAProxy, with the configuration that is shipped, are restarted in turn under load."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from tests.orchestrator.http.test_metrics import scrape
from tests.orchestrator.served import Serve, environment, serving
from tests.orchestrator.telemetry.test_metrics import values
from tests.servers.start import free_port

pytestmark = [pytest.mark.server, pytest.mark.slow]

CONFIG = Path(__file__).parents[2] / "compose" / "haproxy.cfg"
PRODUCTION = CONFIG.with_name("production.yaml")
CLIENTS = 4


@contextmanager
def proxy(program: str, instances: tuple[int, int], **variables: str) -> Iterator[int]:
    """HAProxy in front of two ports; its own port."""
    port = free_port()
    one, other = (f"127.0.0.1:{each}" for each in instances)
    env = os.environ | {"BIND": f"127.0.0.1:{port}", "TRIVIUM_A": one, "TRIVIUM_B": other} | variables
    with subprocess.Popen([program, "-db", "-f", CONFIG], env=env, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: status(port, "/readyz") == 200)
            yield port
        finally:
            process.terminate()


def haproxy_of(program: Callable[[str, str], str]) -> str:
    return program("haproxy", "the Debian package haproxy contains it")


def responded(connection: http.client.HTTPConnection, path: str, body: bytes | None = None) -> int:
    """The status of a request; 0 if it fails."""
    try:
        connection.request("POST" if body else "GET", path, body)
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return 0
    return response.status


def status(port: int, path: str) -> int:
    """The status of a request over a connection of its own; 0 if it fails."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        return responded(connection, path)
    finally:
        connection.close()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def production_bind() -> str:
    """The address in production, with its options of TLS."""
    service = yaml.safe_load(PRODUCTION.read_text().replace("!reset", "").replace("!override", ""))
    return str(service["services"]["haproxy"]["environment"]["BIND"])


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory, program: Callable[[str, str], str]) -> Path:
    """A certificate and its key in one file."""
    folder = tmp_path_factory.mktemp("certificate")
    openssl = program("openssl", "the Debian package openssl contains it")
    key, path = folder / "key", folder / "certificate"
    options = ["-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    subprocess.run([openssl, "req", *options, "-keyout", key, "-out", path], check=True, capture_output=True)
    path.write_text(path.read_text() + key.read_text())
    return path


def test_the_configuration_is_valid_without_a_warning_with_and_without_tls(
    program: Callable[[str, str], str], certificate: Path
) -> None:
    haproxy = haproxy_of(program)
    for bind in (":8080", production_bind().replace("/run/secrets/tls-certificate", str(certificate))):
        env = os.environ | {"BIND": bind, "TRIVIUM_A": "127.0.0.1:1", "TRIVIUM_B": "127.0.0.1:2"}
        done = subprocess.run([haproxy, "-c", "-f", CONFIG], env=env, capture_output=True, text=True, check=True)
        assert "warning" not in (done.stdout + done.stderr).lower()


def test_a_client_that_sends_too_much_is_refused_and_operators_are_not_reached(
    serve: Serve, program: Callable[[str, str], str], tmp_path: Path
) -> None:
    with serve(environment(data_dir=tmp_path)) as (_, address):
        instance = int(address.rpartition(":")[2])
        with proxy(haproxy_of(program), (instance, instance), MAX_RATE="20") as port:
            statuses = Counter(status(port, "/livez") for _ in range(60))
            assert statuses[200] >= 15  # the proxy's own start took some
            assert statuses[429] > 0
            assert set(statuses) == {200, 429}
        with proxy(haproxy_of(program), (instance, instance)) as port:
            assert [status(port, path) for path in ("/metrics", "/%6detrics", "/metrics/")] == [404] * 3
        assert status(instance, "/metrics") == 200


def test_no_request_fails_while_two_instances_are_restarted_in_turn(
    program: Callable[[str, str], str], tmp_path: Path
) -> None:
    ports = free_port(), free_port()
    env = environment(data_dir=tmp_path) | {"TRIVIUM_SHUTDOWN_GRACE_MS": "10000"}
    statuses: Counter[int] = Counter()
    stopping = threading.Event()

    def client(number: int, port: int) -> None:
        """Half of the clients keep their connection, half open a new one for each request."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        numbers = itertools.count()
        while not stopping.is_set():
            body = json.dumps({"query": f"{number} {next(numbers)}", "timeout_ms": 10_000}).encode()
            statuses[responded(connection, "/v1/search", body)] += 1
            if number % 2:
                connection.close()
        connection.close()

    with ThreadPoolExecutor(CLIENTS) as pool, ExitStack() as running:
        instances = [Instance(env, port) for port in ports]
        for instance in instances:
            running.callback(instance.stop)
            instance.start()
        port = running.enter_context(proxy(haproxy_of(program), ports, MAX_RATE="100000"))
        clients = [pool.submit(client, number, port) for number in range(CLIENTS)]
        try:
            for instance in instances:
                wait_until(lambda instance=instance: instance.searches() > 20)  # type: ignore[misc]
                instance.stop()
                instance.start()
                wait_until(lambda instance=instance: instance.searches() > 20)  # type: ignore[misc]
        finally:
            stopping.set()
        for each in clients:
            each.result()
    assert set(statuses) == {200}, statuses
    assert statuses.total() > 100


class Instance:
    """An instance of the service that can be started again at the same port."""

    def __init__(self, env: dict[str, str], port: int) -> None:
        self._env = env
        self._port = port
        self._running = ExitStack()

    def start(self) -> None:
        self._running.enter_context(serving(self._env, port=self._port))

    def stop(self) -> None:
        """Send SIGTERM, as a rolling restart does."""
        self._running.close()

    def searches(self) -> float:
        """How many it has answered since it started."""
        found = values(scrape(f"http://127.0.0.1:{self._port}"))
        return found.get("trivium_request_duration_seconds_count{method=POST}{path=/v1/search}{status=200}", 0.0)
