"""Serving the API with uvicorn, on a loopback address while there are no keys."""

from __future__ import annotations

import ipaddress
import socket

import uvicorn

_GRACE_S = 10


class NotLoopback(ValueError):
    """The service has no keys, so it may only listen where nobody else can reach it."""


def serve_http(host: str, port: int, workers: int) -> None:
    """Serve until told to stop.

    :raises NotLoopback: if ``host`` is not a loopback address.
    :raises OSError: if the port is taken.
    """
    if not _is_loopback(host):
        raise NotLoopback(
            f"--host is {host!r}: without API keys the service listens on loopback only, "
            "allowed are 127.0.0.1, ::1 and localhost"
        )
    ensure_free(host, port)
    uvicorn.run(
        "orchestrator.api.app:create",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        access_log=False,  # ours has the decisions and the timings
        log_config=None,
        server_header=False,
        # Who has sent half a request may never send the rest: a shutdown waits this long for it, in seconds.
        timeout_graceful_shutdown=_GRACE_S,
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


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
