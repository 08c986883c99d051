"""Serving the API with uvicorn, on a loopback address while there are no keys."""

from __future__ import annotations

import socket

import uvicorn

from orchestrator.loopback import is_loopback
from orchestrator.settings import read


class NotLoopback(ValueError):
    """The service has no keys, so it may only listen where nobody else can reach it."""


def serve_http(host: str, port: int, workers: int) -> None:
    """Serve until told to stop.

    :raises NotLoopback: if ``host`` is not a loopback address, and there are no keys.
    :raises OSError: if the port is taken.
    """
    settings = read()
    if not settings.keys_file and not is_loopback(host):
        raise NotLoopback(
            f"--host is {host!r}: without API keys the service listens on loopback only, "
            "allowed are 127.0.0.1, ::1 and localhost; TRIVIUM_KEYS_FILE and `trivium keys add` make keys"
        )
    ensure_free(host, port)
    uvicorn.run(
        "orchestrator.api.app:create",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        http="orchestrator.api.protocol:Bounded",
        ws="none",
        access_log=False,  # ours has the decisions and the timings
        log_config=None,
        server_header=False,
        proxy_headers=False,  # nothing asks where a request came from, and the application is not wrapped
        timeout_graceful_shutdown=settings.grace_ms / 1_000,  # type: ignore[arg-type]  # asyncio takes parts of seconds
    )


def ensure_free(host: str, port: int) -> None:
    """Say that a port is taken while there is somebody to tell.

    :raises OSError: naming the port and what to do.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise OSError(
                f"port {port} of {host} cannot be had ({error.strerror}): choose another with --port"
            ) from error
