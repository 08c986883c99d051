"""Servers in separate processes, above all the service, and their use of memory and file descriptors."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from tests.servers.start import free_port

_START_TIMEOUT_S = 120
_STOP_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server that is ready; terminated at the end of its context."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(_STOP_TIMEOUT_S)

    def kill(self) -> None:
        """Kill it (SIGKILL), as a power failure would."""
        self.process.kill()
        self.process.wait(_STOP_TIMEOUT_S)

    def usage(self) -> tuple[float, int]:
        """MiB of memory and number of open file descriptors, of all its processes."""
        parent = psutil.Process(self.process.pid)
        family = [parent, *parent.children(recursive=True)]
        return sum(each.memory_info().rss for each in family) / 2**20, sum(each.num_fds() for each in family)

    def cpu_s(self) -> float:
        """Seconds of CPU time that all its processes have used."""
        parent = psutil.Process(self.process.pid)
        times = [each.cpu_times() for each in (parent, *parent.children(recursive=True))]
        return sum(each.user + each.system for each in times)

    def connections(self) -> list[set[int]]:
        """The ports of the clients that are connected, for each process that has clients."""
        children = psutil.Process(self.process.pid).children(recursive=True) or [psutil.Process(self.process.pid)]
        ports = [
            {each.raddr.port for each in child.net_connections("tcp") if each.raddr and each.laddr.port == self.port}
            for child in children
        ]
        return [each for each in ports if each]


def start_service(settings: Mapping[str, object], log: Path, workers: int = 1) -> ServerProcess:
    """Start ``trivium serve`` on a free port.

    :param settings: by name, as in :func:`orchestrator.settings.setting_fields`.
    :param log: the file to which the service's log is appended.
    """
    port = free_port()
    env = {f"TRIVIUM_{name.upper()}": str(value) for name, value in settings.items()}
    command = ["-m", "orchestrator", "serve", "--port", str(port), "--workers", str(workers)]
    return start_python(command, port, "/readyz", log, env)


def start_python(
    arguments: Sequence[str],
    port: int,
    ready_path: str,
    log: Path,
    env: Mapping[str, str],
    stdin: IO[bytes] | None = None,
) -> ServerProcess:
    """Start a server with this Python, and wait until ``ready_path`` returns a success.

    :param env: added to the environment of this process.
    """
    with log.open("ab") as log_file:
        process = subprocess.Popen([sys.executable, *arguments], env=os.environ | env, stderr=log_file, stdin=stdin)
    server = ServerProcess(process, port, log)
    try:
        _wait_until_ready(server, ready_path)
    except BaseException:
        server.kill()
        raise
    return server


def _wait_until_ready(server: ServerProcess, path: str) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            raise SystemExit(f"the service ended with exit code {server.process.returncode}: see {server.log}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"the service was not ready after {_START_TIMEOUT_S} s: see {server.log}")
