"""Real servers for the tests: started once a session, on 127.0.0.1 alone, and ended with whoever started them."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_HERE = Path(__file__).parent
_PATIENCE_S = 180.0


class NotHere(Exception):
    """This machine cannot have the server; the message says what is missing."""


@contextmanager
def opensearch() -> Iterator[str]:
    """A real OpenSearch node; its address."""
    with _java("opensearch", "OpenSearch.java", "-Xmx1g") as port:
        yield f"opensearch+http://127.0.0.1:{port}"


@contextmanager
def bolt() -> Iterator[str]:
    """A real Neo4j over Bolt, which stands in for Memgraph: that cannot be had here. Its address."""
    with _java("bolt", "Bolt.java", "-Xmx1g") as port:
        yield f"bolt://127.0.0.1:{port}"


@contextmanager
def redis() -> Iterator[str]:
    """A real Redis; its address."""
    program = _needed("redis-server", "Debian's package redis-server has it")
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _wait(process, lambda: _listens(port))
            yield f"redis://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _java(name: str, launcher: str, memory: str) -> Iterator[int]:
    """A server in one Java process, made of what its ``pom.xml`` names."""
    java = _needed("java", "a Java 17 development kit has it")
    folder = _HERE / name
    with tempfile.TemporaryDirectory() as work:
        port = free_port()
        command = [java, memory, "-cp", _class_path(folder), str(folder / launcher), f"{work}/data", str(port)]
        with Path(work, "log").open("wb") as log:
            # Its standard input is ours: when this process ends, however it does, the server reads the end and stops.
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=work)
        try:
            try:
                _wait(process, lambda: _listens(port) and b"ready" in Path(work, "log").read_bytes())
            except NotHere as error:
                raise NotHere(f"{name}: {error}: {Path(work, 'log').read_text()[-2_000:]}") from error
            yield port
        finally:
            process.stdin.close() if process.stdin else None
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)


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
