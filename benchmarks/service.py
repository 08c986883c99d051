"""Servers in processes of their own, the service above all, and what they cost the machine."""

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

_PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class Running:
    """A server that is ready; ended by leaving its context."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait(60)

    def usage(self) -> tuple[float, int]:
        """MiB in memory and open file descriptors, of all of its processes."""
        parent = psutil.Process(self.process.pid)
        family = [parent, *parent.children(recursive=True)]
        return sum(each.memory_info().rss for each in family) / 2**20, sum(each.num_fds() for each in family)


def service(settings: Mapping[str, object], log: Path, workers: int = 1) -> Running:
    """``trivium serve`` with these settings (names as in :class:`orchestrator.settings.Settings`), on a free port.

    :param log: the file that its log is added to.
    """
    port = free_port()
    env = {f"TRIVIUM_{name.upper()}": str(value) for name, value in settings.items()}
    command = ["-m", "orchestrator", "serve", "--port", str(port), "--workers", str(workers)]
    return python(command, port, "/readyz", log, env)


def python(
    arguments: Sequence[str], port: int, ready: str, log: Path, env: Mapping[str, str], given: IO[bytes] | None = None
) -> Running:
    """A server that this Python runs, once it answers at the path ``ready``.

    :param env: beside what this process has.
    :param given: what it reads as its standard input.
    """
    with log.open("ab") as taken:
        process = subprocess.Popen([sys.executable, *arguments], env=os.environ | env, stderr=taken, stdin=given)
    running = Running(process, port, log)
    try:
        _wait(running, ready)
    except BaseException:
        running.kill()
        raise
    return running


def _wait(running: Running, ready: str) -> None:
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        if running.process.poll() is not None:
            raise SystemExit(f"the service ended with {running.process.returncode}: see {running.log}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{running.port}{ready}", timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"the service was not ready after {_PATIENCE_S} s: see {running.log}")
