"""The service in processes of its own, and what they cost the machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.servers.start import free_port

_PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class Running:
    """A service that is ready."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def usage(self) -> tuple[float, int]:
        """MiB in memory and open file descriptors, of all of its processes."""
        parent = psutil.Process(self.process.pid)
        family = [parent, *parent.children(recursive=True)]
        return sum(each.memory_info().rss for each in family) / 2**20, sum(each.num_fds() for each in family)


@contextmanager
def service(settings: Mapping[str, object], log: Path, workers: int = 1) -> Iterator[Running]:
    """``trivium serve`` with these settings (names as in :class:`orchestrator.settings.Settings`), ready; ended after.

    :param log: the file that takes its log.
    """
    port = free_port()
    env = {f"TRIVIUM_{name.upper()}": str(value) for name, value in settings.items()}
    command = [sys.executable, "-m", "orchestrator", "serve", "--port", str(port), "--workers", str(workers)]
    with log.open("ab") as taken, subprocess.Popen(command, env=os.environ | env, stderr=taken) as process:
        try:
            _wait(process, port, log)
            yield Running(process, port, log)
        finally:
            process.terminate()
            process.wait(60)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        if process.poll() is not None:
            raise SystemExit(f"the service ended with {process.returncode}: see {log}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"the service was not ready after {_PATIENCE_S} s: see {log}")
