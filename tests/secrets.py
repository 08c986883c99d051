"""What no log may ever say, and all that was logged: ``test_no_secret_was_logged`` compares the two at the very end."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

LOGGED = Path(tempfile.mkdtemp(prefix="trivium-logs-")) / "logged"
"""Every line that any logger of this process wrote, and that the services wrote which it started."""

_secrets: set[str] = set()


def keep_out(secret: str) -> str:
    """Note that ``secret`` may be in no log from here on; it is returned."""
    _secrets.add(secret)
    return secret


def kept_out() -> frozenset[str]:
    """All that was noted."""
    return frozenset(_secrets)


def record_everything() -> None:
    """Write what is logged from now on to :data:`LOGGED`, whatever handlers there are: they come and go."""
    plain, make = logging.Formatter(), logging.getLogRecordFactory()

    def recorded(*arguments: object, **named: object) -> logging.LogRecord:
        record = make(*arguments, **named)
        with LOGGED.open("a") as file:
            file.write(plain.format(record) + "\n")
        record.exc_text = None  # the next handler may show traces otherwise
        return record

    logging.setLogRecordFactory(recorded)
