"""One structured line for each request, whatever its outcome."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import msgspec

ACCESS_LOGGER = "trivium.access"

_log = logging.getLogger(ACCESS_LOGGER)


def log_request(request_id: str, method: str, path: str, status: int, **fields: object) -> None:
    """Log a request.

    :param path: of the operation, without ids.
    :param fields: decisions and timings; never text of queries or documents.
    """
    if _log.isEnabledFor(logging.INFO):
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "request_id": request_id, "method": method, "path": path, "status": status, **fields}
        _log.info(msgspec.json.encode(line).decode())
