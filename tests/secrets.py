"""Secrets of the tests, and everything that was logged: ``test_no_secret_was_logged`` compares the two at the end."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

LOGGED = Path(tempfile.mkdtemp(prefix="trivium-logs-")) / "logged"
"""Every line logged by this process, and by the services that it started."""

_secrets: set[str] = set()


def register_secret(secret: str) -> str:
    """Register a secret, which must not be logged; it is returned."""
    _secrets.add(secret)
    return secret


def registered_secrets() -> frozenset[str]:
    """All registered secrets."""
    return frozenset(_secrets)


def record_all_logs() -> None:
    """Write everything that is logged from now on to :data:`LOGGED`, independent of handlers, which tests replace."""
    plain, make = logging.Formatter(), logging.getLogRecordFactory()

    def recorded(*arguments: object, **named: object) -> logging.LogRecord:
        record = make(*arguments, **named)
        with LOGGED.open("a") as file:
            file.write(plain.format(record) + "\n")
        record.exc_text = None  # the next handler may show traces otherwise
        return record

    logging.setLogRecordFactory(recorded)
