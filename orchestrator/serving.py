"""Serving the API with uvicorn, on a loopback address while there are no keys."""

from __future__ import annotations

import ipaddress

import uvicorn


class NotLoopback(ValueError):
    """The service has no keys, so it may only listen where nobody else can reach it."""


def serve_http(host: str, port: int, workers: int) -> None:
    """Serve until told to stop.

    :raises NotLoopback: if ``host`` is not a loopback address.
    """
    if not _is_loopback(host):
        raise NotLoopback(
            f"--host is {host!r}: without API keys the service listens on loopback only, "
            "allowed are 127.0.0.1, ::1 and localhost"
        )
    uvicorn.run(
        "orchestrator.api.app:create",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        access_log=False,  # ours has the decisions and the timings
        log_config=None,
        server_header=False,
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
