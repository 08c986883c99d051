"""One structured line for each request, whatever its outcome."""

from __future__ import annotations

import logging
from time import time

import msgspec

from orchestrator.telemetry.times import rfc3339

ACCESS_LOGGER = "trivium.access"

_log = logging.getLogger(ACCESS_LOGGER)


def log_request(
    request_id: str, method: str, path: str, status: int, *, level: int = logging.INFO, **fields: object
) -> None:
    """Log a request.

    :param path: of the operation, without ids.
    :param level: of the line, as in :mod:`logging`.
    :param fields: decisions and timings; never text of queries or documents.
    """
    if _log.isEnabledFor(level):
        now = rfc3339(time())
        name = logging.getLevelName(level).lower()
        line = {
            "time": now,
            "level": name,
            "request_id": request_id,
            "method": method,
            "path": path,
            "status": status,
            **fields,
        }
        _log.log(level, msgspec.json.encode(line).decode())
