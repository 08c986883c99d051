"""The service as a process of its own, started like an operator starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from tests.secrets import LOGGED
from tests.servers.start import free_port

_START_TIMEOUT_S = 60.0
_DEFAULTS = {"TRIVIUM_SHUTDOWN_GRACE_MS": "1000", "TRIVIUM_UPKEEP_INTERVAL_S": "0"}
"""No client of a test waits for a process to drain, which takes a tenth of this; and no test needs one more process."""


class Serve(Protocol):
    """See :func:`serving`."""

    def __call__(
        self, env: dict[str, str], *arguments: str, until: str = "/readyz", port: int = 0, run_by: Sequence[str] = ()
    ) -> AbstractContextManager[tuple[subprocess.Popen[bytes], str]]: ...


@contextmanager
def serving(
    env: dict[str, str], *arguments: str, until: str = "/readyz", port: int = 0, run_by: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """``trivium serve``: its process and its address. Ended with SIGTERM if it has not ended by itself.

    :param until: the path that responds with a success when the service has started.
    :param port: a free one by default.
    :param run_by: the command that executes it.
    """
    port = port or free_port()
    command = [*run_by, sys.executable, "-m", "orchestrator", "serve", "--port", str(port), *arguments]
    with LOGGED.open("ab") as log, subprocess.Popen(command, env={**_DEFAULTS, **env}, stderr=log) as process:
        address = f"http://127.0.0.1:{port}"
        try:
            deadline = time.monotonic() + _START_TIMEOUT_S
            while True:
                assert process.poll() is None
                assert time.monotonic() < deadline, f"not ready after {_START_TIMEOUT_S:g} s"
                try:
                    urllib.request.urlopen(address + until, timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield process, address
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) in {0, -signal.SIGTERM}


def environment(**settings: object) -> dict[str, str]:
    """The environment of this process, with settings."""
    return {**os.environ, **{f"TRIVIUM_{name.upper()}": str(value) for name, value in settings.items()}}
