"""The one form of times in the log."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(timestamp: float) -> str:
    """Seconds since 1970 as RFC 3339 in UTC, with milliseconds: ``2026-01-31T12:00:00.000+00:00``."""
    return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="milliseconds")
