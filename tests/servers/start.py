"""Real servers for the tests: one each session, on 127.0.0.1 only."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

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
def redis_on(port: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A real Redis at a port; its address and its process."""
    program = find_program("redis-server", "the Debian package redis-server contains it")
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _wait(process, lambda: _listens(port))
            yield f"redis://127.0.0.1:{port}", process
        finally:
            process.send_signal(signal.SIGCONT)  # a test may have stopped it
            process.terminate()
            process.wait(30)


def free_port() -> int:
    """A free port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Java:
    """A server in one Java process, with the archives that its ``pom.xml`` names; its data is in ``folder``.

    Its standard input is a pipe from this process: when this process ends in any way, the server reads the end of the
    input and stops.

    :param name: ``opensearch`` or ``bolt``.
    :param jars: more archives.
    :param arguments: more arguments of the launcher.
    """

    def __init__(self, name: str, folder: Path, jars: Sequence[Path] = (), arguments: Sequence[str] = ()) -> None:
        launcher, scheme = _KINDS[name]
        java = find_program("java", "a Java 17 development kit contains it")
        home, port = _HERE / name, free_port()
        self.url = f"{scheme}://127.0.0.1:{port}"
        self._port, self._folder = port, folder
        class_path = ":".join((_class_path(home), *map(str, jars)))
        command = [java, "-Xmx1g", "-cp", class_path, str(home / launcher)]
        self._command = [*command, str(folder / "data"), str(port), *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process, "it has not been started"
        return self._process.pid

    def start(self) -> None:
        """Start it, or start it again, and wait until it listens.

        :raises NotAvailable: if it does not.
        """
        log = self._folder / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=out, stderr=out, cwd=self._folder, start_new_session=True
            )
        self._process = process
        try:
            _wait(process, lambda: _listens(self._port) and b"ready" in log.read_bytes())
        except NotAvailable as error:
            raise NotAvailable(f"{self.url}: {error}: {log.read_text()[-2_000:]}") from error

    def kill(self) -> None:
        """Stop it without a shutdown, like a power cut."""
        if self._process:
            self._process.kill()
            self._process.wait(30)

    def __enter__(self) -> Java:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is None:
            return
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()


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
