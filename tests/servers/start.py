"""Real servers for the tests: one each session, on 127.0.0.1 only."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Self

_HERE = Path(__file__).parent
_START_TIMEOUT_S = 180.0
_KINDS = {"opensearch": ("OpenSearch.java", "opensearch+http"), "bolt": ("Bolt.java", "bolt")}


class NotAvailable(Exception):
    """The server cannot run on this machine; the message says what is missing."""


@contextmanager
def opensearch() -> Iterator[str]:
    """A real OpenSearch node; its address."""
    with tempfile.TemporaryDirectory() as folder, Java("opensearch", Path(folder)) as server:
        yield server.url


@contextmanager
def bolt() -> Iterator[str]:
    """A real Neo4j over Bolt, in place of Memgraph, which no package contains. Its address."""
    with tempfile.TemporaryDirectory() as folder, Java("bolt", Path(folder)) as server:
        yield server.url


@contextmanager
def redis() -> Iterator[str]:
    """A real Redis; its address."""
    with redis_on(free_port()) as (url, _):
        yield url


@contextmanager
def qdrant() -> Iterator[str]:
    """A real Qdrant; its address."""
    with tempfile.TemporaryDirectory() as folder, Qdrant(Path(folder)) as server:
        yield server.url


@contextmanager
def redis_on(port: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A real Redis at a port; its address and its process."""
    with tempfile.TemporaryDirectory() as folder, Redis(Path(folder), port) as server:
        yield server.url, server.process


def free_port() -> int:
    """A free port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server in one process that can be killed and started again, with the same address and data.

    Its standard input is a pipe from this process.

    :param url: its address.
    :param folder: of its log, and of its data.
    :param environment: more variables.
    :param ready: what its log contains when it accepts requests.
    """

    def __init__(
        self,
        url: str,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        ready: bytes = b"",
    ) -> None:
        self.url = url
        self._port = int(url.rpartition(":")[2])
        self._command, self._folder, self._ready = command, folder, ready
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process of the last start."""
        assert self._process, "it has not been started"
        return self._process

    def start(self) -> None:
        """Start it, or start it again, and wait until it listens.

        :raises NotAvailable: if it does not.
        """
        log = self._folder / "log"
        with log.open("wb") as out:
            self._process = process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                cwd=self._folder,
                env=self._environment,
                start_new_session=True,
            )
        try:
            _wait(process, lambda: _listens(self._port) and self._ready in log.read_bytes())
        except NotAvailable as error:
            raise NotAvailable(f"{self.url}: {error}: {log.read_text()[-2_000:]}") from error

    def kill(self) -> None:
        """Stop it without a shutdown, like a power cut."""
        if self._process:
            self._process.kill()
            self._process.wait(30)

    def _ask_to_stop(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGCONT)  # a test may have suspended it
        process.terminate()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        self._ask_to_stop(self._process)
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()


class Java(Server):
    """A server with the archives that its ``pom.xml`` names. It stops at the end of its standard input, so it also
    stops when this process is killed.

    :param name: ``opensearch`` or ``bolt``.
    :param jars: more archives.
    :param arguments: more arguments of the launcher.
    """

    def __init__(self, name: str, folder: Path, jars: Sequence[Path] = (), arguments: Sequence[str] = ()) -> None:
        launcher, scheme = _KINDS[name]
        java = find_program("java", "a Java 17 development kit contains it")
        home, port = _HERE / name, free_port()
        class_path = ":".join((_class_path(home), *map(str, jars)))
        command = [java, "-Xmx1g", "-cp", class_path, str(home / launcher), str(folder / "data"), str(port), *arguments]
        super().__init__(f"{scheme}://127.0.0.1:{port}", command, folder, ready=b"ready")

    def _ask_to_stop(self, process: subprocess.Popen[bytes]) -> None:
        """It is asked by the end of its standard input."""


class Redis(Server):
    """A Redis that stores nothing on disk."""

    def __init__(self, folder: Path, port: int) -> None:
        program = find_program("redis-server", "the Debian package redis-server contains it")
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
        super().__init__(f"redis://127.0.0.1:{port}", command, folder)


class Qdrant(Server):
    """A Qdrant; its address is that of REST."""

    def __init__(self, folder: Path) -> None:
        program = find_program("qdrant", "build it from its source, no package contains it")
        port, grpc_port = free_port(), free_port()
        environment = {
            "QDRANT__SERVICE__HOST": "127.0.0.1",
            "QDRANT__SERVICE__HTTP_PORT": str(port),
            "QDRANT__SERVICE__GRPC_PORT": str(grpc_port),
            "QDRANT__STORAGE__STORAGE_PATH": str(folder / "storage"),
            "QDRANT__STORAGE__SNAPSHOTS_PATH": str(folder / "snapshots"),
            "QDRANT__TELEMETRY_DISABLED": "true",
        }
        super().__init__(f"qdrant+http://127.0.0.1:{port}", [program], folder, environment)


@cache  # Maven takes seconds
def _class_path(folder: Path) -> str:
    maven = find_program("mvn", "the Debian package maven contains it")
    with tempfile.TemporaryDirectory() as work:
        written = Path(work, "class-path")
        command = [maven, "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:build-classpath"]
        done = subprocess.run(
            [*command, f"-Dmdep.outputFile={written}"], capture_output=True, text=True, timeout=600, check=False
        )
        if done.returncode:
            raise NotAvailable(f"{folder.name}: its Java archives cannot be downloaded: {done.stdout[-1_000:]}")
        return written.read_text().strip()


def find_program(program: str, advice: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise NotAvailable(f"there is no {program} on this machine: {advice}")
    return found


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait(process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> None:
    until = time.monotonic() + _START_TIMEOUT_S
    while not ready():
        if process.poll() is not None:
            raise NotAvailable(f"it ended with {process.returncode}")
        if time.monotonic() > until:
            raise NotAvailable(f"it was not ready after {_START_TIMEOUT_S:.0f} s")
        time.sleep(0.05)
