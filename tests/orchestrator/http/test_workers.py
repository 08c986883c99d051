"""Each worker process gets the same number of connections."""

from __future__ import annotations

import http.client
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from orchestrator.http.workers import ConnectionDistributor
from tests.orchestrator.served import Serve, environment
from tests.secrets import LOGGED
from tests.servers.start import free_port


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield listener


class Worker:
    """The worker's end of a channel."""

    def __init__(self, distributor: ConnectionDistributor, stack: ExitStack) -> None:
        # A process would get a copy, and the distributor closes its own.
        self.channel = stack.enter_context(distributor.new_channel().dup())
        self.channel.settimeout(10)
        self._distributor = distributor

    def get_ready(self) -> Worker:
        """Report that it is ready; returns when the distributor knows."""
        count = len(self._distributor._ready)
        self.channel.send(b"r")
        deadline = time.monotonic() + 10
        while len(self._distributor._ready) == count:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        return self

    def receive(self) -> tuple[str, int]:
        """The client's address of the next connection."""
        _, (descriptor,), _, _ = socket.recv_fds(self.channel, 1, 1)
        with socket.socket(fileno=descriptor) as connection:
            address: tuple[str, int] = connection.getpeername()
            return address


def test_connections_go_to_the_workers_in_turn(listener: socket.socket) -> None:
    with ConnectionDistributor(listener) as distributor, ExitStack() as stack:
        workers = [Worker(distributor, stack).get_ready() for _ in range(2)]
        clients = [stack.enter_context(socket.create_connection(listener.getsockname())) for _ in range(20)]
        received = [[worker.receive() for _ in range(10)] for worker in workers]
        assert received == [[client.getsockname() for client in clients[number::2]] for number in range(2)]


def test_a_connection_waits_until_a_worker_is_ready(listener: socket.socket) -> None:
    with ConnectionDistributor(listener) as distributor, ExitStack() as stack:
        worker = Worker(distributor, stack)
        client = stack.enter_context(socket.create_connection(listener.getsockname()))
        worker.channel.settimeout(0.2)
        with pytest.raises(TimeoutError):
            worker.receive()
        worker.channel.settimeout(10)
        assert worker.get_ready().receive() == client.getsockname()


def test_a_worker_that_has_ended_or_takes_no_more_is_left_out(listener: socket.socket) -> None:
    with ConnectionDistributor(listener) as distributor, ExitStack() as stack:
        ended, full, alive = (Worker(distributor, stack).get_ready() for _ in range(3))
        ended.channel.close()
        full.channel.shutdown(socket.SHUT_RD)
        for _ in range(5):
            client = stack.enter_context(socket.create_connection(listener.getsockname()))
            assert alive.receive() == client.getsockname()


def workers_of(parent: psutil.Process) -> list[psutil.Process]:
    return [child for child in parent.children() if "spawn_main" in " ".join(child.cmdline())]


def get(connection: http.client.HTTPConnection) -> int:
    connection.request("GET", "/livez")
    response = connection.getresponse()
    response.read()
    return response.status


def open_connections(parent: psutil.Process, port: int, count: int) -> list[int]:
    """The number of connections of each worker while ``count`` are open, each of which has sent a request."""
    with ExitStack() as stack:
        clients = [
            stack.enter_context(closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)))
            for _ in range(count)
        ]
        assert {get(client) for client in clients} == {200}
        ports = {client.sock.getsockname()[1] for client in clients}
        return [
            sum(bool(each.raddr) and each.raddr.port in ports for each in worker.net_connections("tcp"))
            for worker in workers_of(parent)
        ]


def test_two_processes_have_the_same_number_of_connections_and_one_that_dies_is_replaced(
    serve: Serve, tmp_path: Path, model_dir: Path
) -> None:
    with serve(environment(data_dir=tmp_path, model_dir=model_dir), "--workers", "2") as (process, address):
        port, parent = urlsplit(address).port or 0, psutil.Process(process.pid)
        wait_for_even_connections(parent, port)
        victim = workers_of(parent)[0]
        victim.kill()
        psutil.wait_procs([victim], 30)
        assert sum(open_connections(parent, port, 4)) == 4  # by the other one
        wait_for_even_connections(parent, port)
    assert f"worker {victim.pid} ended with exit code -9: another one is started" in LOGGED.read_text()


def test_the_workers_end_with_a_parent_that_is_killed(
    serve: Serve, python: str, tmp_path: Path, model_dir: Path
) -> None:
    """The process that ``serve`` starts is the parent of the one that is killed: it must end by itself."""
    shell = [python, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])"]
    env = environment(data_dir=tmp_path, model_dir=model_dir)
    with serve(env, "--workers", "2", run_by=shell) as (process, _):
        (parent,) = psutil.Process(process.pid).children()
        workers = workers_of(parent)
        assert len(workers) == 2
        parent.kill()
        _, alive = psutil.wait_procs(workers, 30)
        assert alive == []


def test_workers_end_with_a_parent_that_never_read_that_they_are_ready(
    python: str, tmp_path: Path, model_dir: Path
) -> None:
    """Then the end of a channel is an error."""
    env, log = environment(data_dir=tmp_path / "data", model_dir=model_dir), tmp_path / "log"
    command = [python, "-m", "orchestrator", "serve", "--port", str(free_port()), "--workers", "2"]

    def wait_for(line: str) -> None:
        deadline = time.monotonic() + 60
        while log.read_text().count(line) < 2:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.01)

    with log.open("wb") as file, subprocess.Popen(command, env=env, stdout=file, stderr=file) as process:
        parent = psutil.Process(process.pid)
        wait_for("Started server process")
        workers = workers_of(parent)
        parent.suspend()
        wait_for("Application startup complete")
        parent.kill()
        assert psutil.wait_procs(workers, 30)[1] == []


def wait_for_even_connections(parent: psutil.Process, port: int) -> None:
    """Return when both processes are ready, so that they have eight of sixteen connections each."""
    deadline = time.monotonic() + 60
    while (counts := open_connections(parent, port, 16)) != [8, 8]:
        assert time.monotonic() < deadline, counts
        time.sleep(0.1)
