"""Secrets of the tests, and everything that was logged: a fixture of all tests compares the two at the end."""

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


def logged_secrets() -> set[str]:
    """The secrets that were logged so far, in whatever case."""
    logged = LOGGED.read_text(errors="replace").casefold() if LOGGED.exists() else ""
    return {secret for secret in _secrets if secret.casefold() in logged}


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
