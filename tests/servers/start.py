"""Real servers for the tests: started once a session, on 127.0.0.1 alone, and ended with whoever started them."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_HERE = Path(__file__).parent
_PATIENCE_S = 180.0
_KINDS = {"opensearch": ("OpenSearch.java", "opensearch+http"), "bolt": ("Bolt.java", "bolt")}


class NotHere(Exception):
    """This machine cannot have the server; the message says what is missing."""


@contextmanager
def opensearch() -> Iterator[str]:
    """A real OpenSearch node; its address."""
    with tempfile.TemporaryDirectory() as folder, Java("opensearch", Path(folder)) as server:
        yield server.url


@contextmanager
def bolt() -> Iterator[str]:
    """A real Neo4j over Bolt, which stands in for Memgraph: that cannot be had here. Its address."""
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
    program = _needed("redis-server", "Debian's package redis-server has it")
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _wait(process, lambda: _listens(port))
            yield f"redis://127.0.0.1:{port}", process
        finally:
            process.send_signal(signal.SIGCONT)  # if somebody stopped it
            process.terminate()
            process.wait(30)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Java:
    """A server in one Java process, made of what its ``pom.xml`` names; its data is in ``folder``.

    Its standard input is ours: when this process ends, however it does, the server reads the end of it and stops.

    :param name: ``opensearch`` or ``bolt``.
    """

    def __init__(self, name: str, folder: Path) -> None:
        launcher, scheme = _KINDS[name]
        java = _needed("java", "a Java 17 development kit has it")
        home, port = _HERE / name, free_port()
        self.url = f"{scheme}://127.0.0.1:{port}"
        self._port, self._folder = port, folder
        command = [java, "-Xmx1g", "-cp", _class_path(home), str(home / launcher)]
        self._command = [*command, str(folder / "data"), str(port)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, again if need be, and wait until it listens.

        :raises NotHere: if it does not.
        """
        log = self._folder / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=out, stderr=out, cwd=self._folder, start_new_session=True
            )
        self._process = process
        try:
            _wait(process, lambda: _listens(self._port) and b"ready" in log.read_bytes())
        except NotHere as error:
            raise NotHere(f"{self.url}: {error}: {log.read_text()[-2_000:]}") from error

    def kill(self) -> None:
        """End it as a power cut would."""
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


def _class_path(folder: Path) -> str:
    maven = _needed("mvn", "Debian's package maven has it")
    with tempfile.TemporaryDirectory() as work:
        written = Path(work, "class-path")
        command = [maven, "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:build-classpath"]
        done = subprocess.run(
            [*command, f"-Dmdep.outputFile={written}"], capture_output=True, text=True, timeout=600, check=False
        )
        if done.returncode:
            raise NotHere(f"{folder.name}: its Java archives cannot be had: {done.stdout[-1_000:]}")
        return written.read_text().strip()


def _needed(program: str, advice: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise NotHere(f"there is no {program} on this machine: {advice}")
    return found


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait(process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> None:
    until = time.monotonic() + _PATIENCE_S
    while not ready():
        if process.poll() is not None:
            raise NotHere(f"it ended with {process.returncode}")
        if time.monotonic() > until:
            raise NotHere(f"it was not ready after {_PATIENCE_S:.0f} s")
        time.sleep(0.05)
