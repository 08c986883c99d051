"""The log: one JSON object per line on standard error."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pythonjsonlogger.core import LogData
from pythonjsonlogger.msgspec import MsgspecFormatter

from orchestrator.telemetry.access_log import ACCESS_LOGGER
from orchestrator.telemetry.times import rfc3339

_SILENCED = ("opensearch", "opensearchpy", "httpx", "httpx2", "httpcore", "neo4j")
"""Loggers of drivers: they write a line for every request, with bodies, and a trace for every failed one. The service
reports both itself."""


class _Formatter(MsgspecFormatter):
    """The lines of the access log are JSON already; all others become an object."""

    def format(self, record: logging.LogRecord) -> str:
        return record.getMessage() if record.name == ACCESS_LOGGER else super().format(record)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  # of logging
        """The same form as in the access log."""
        del datefmt
        return rfc3339(record.created)

    def process_log_record(self, log_data: LogData) -> LogData:
        """The level in lower case, as in the settings; without uvicorn's second message, for terminals."""
        line = log_data | {"level": log_data["level"].lower()}
        line.pop("color_message", None)
        return line


def configure_logging(level: str) -> None:
    """Log to standard error from ``level`` on, and log warnings of Python, which would be plain text there."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _Formatter(
            "{asctime}{levelname}{name}{message}",
            style="{",
            rename_fields={"asctime": "time", "levelname": "level", "name": "logger", "exc_info": "trace"},
        )
    )
    for name in _SILENCED:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger("mcp").setLevel(logging.WARNING)  # it writes lines for each request
    # No line has a thread, process, task or caller, and finding them is half of the cost of a line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # from the documentation of logging, section "Optimization"
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)


@contextmanager
def with_field(name: str, value: str) -> Iterator[None]:
    """Inside, every line of the log has a field with this value."""
    factory = logging.getLogRecordFactory()

    def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        made = factory(*args, **kwargs)
        setattr(made, name, value)
        return made

    logging.setLogRecordFactory(record)
    try:
        yield
    finally:
        logging.setLogRecordFactory(factory)
