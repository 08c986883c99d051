"""Serving the API with uvicorn, on a loopback address if there are no keys."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from orchestrator.auth.loopback import is_loopback
from orchestrator.settings.groups import Settings
from orchestrator.telemetry.logging import configure_logging
from orchestrator.telemetry.registry import MULTIPROCESS_VARIABLE

_APP = "orchestrator.http.app:create_app"
PROTOCOL = "orchestrator.http.protocol:LimitedHttpProtocol"


class NotLoopback(ValueError):
    """The service has no keys, so it may only listen where no other machine can reach it."""


_WORKER_TIMEOUT_S = 60
"""Seconds after which a worker that does not answer its supervisor is killed. One that starts cannot answer before it
has imported its packages, which takes long on a busy machine."""
_KEEP_ALIVE_S = 75
"""Seconds after which an idle connection is closed: more than clients and load balancers keep them, so that none of
them sends a request on a connection that is being closed."""


def serve_http(settings: Settings, host: str, port: int, workers: int) -> None:
    """Serve until the process is stopped.

    :raises NotLoopback: if ``host`` is not a loopback address, and there are no keys.
    :raises OSError: if the port is in use.
    """
    if not settings.access.keys_file and not is_loopback(host):
        raise NotLoopback(
            f"--host is {host!r}: without API keys the service listens on loopback only, "
            "allowed are 127.0.0.1, ::1 and localhost; to create keys, set TRIVIUM_KEYS_FILE and run `trivium keys add`"
        )
    configure_logging(settings.server.log_level)  # of this process; workers do it themselves
    ensure_free(host, port)
    options: dict[str, Any] = {
        "factory": True,
        "host": host,
        "port": port,
        "workers": workers,
        "http": PROTOCOL,
        "ws": "none",
        "access_log": False,  # the service writes its own
        "log_config": None,
        "server_header": False,
        "proxy_headers": False,  # nothing depends on the address of the client
        "timeout_keep_alive": _KEEP_ALIVE_S,
        "timeout_graceful_shutdown": settings.server.shutdown_grace_ms / 1_000,
        "timeout_worker_healthcheck": _WORKER_TIMEOUT_S,
    }
    if workers == 1 or sys.platform == "win32":  # Windows cannot send connections to another process
        try:
            uvicorn.run(_APP, **options)
        except SystemExit as error:
            raise SystemExit(1 if error.code == STARTUP_FAILURE else error.code) from None
    else:
        from orchestrator.http.workers import LOOP, Workers  # noqa: PLC0415  # it cannot be imported on Windows

        config = uvicorn.Config(_APP, loop=LOOP, **options)
        with tempfile.TemporaryDirectory(prefix="trivium-metrics-") as folder:
            os.environ.setdefault(MULTIPROCESS_VARIABLE, folder)
            Workers(config, config.bind_socket()).run()


def ensure_free(host: str, port: int) -> None:
    """Check a port before any work is done.

    :raises OSError: naming the port and what to do.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise OSError(
                f"port {port} of {host} cannot be used ({error.strerror}): choose another with --port"
            ) from error
