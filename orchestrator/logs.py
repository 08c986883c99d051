"""Logs: one JSON object a line on standard error."""

from __future__ import annotations

import logging
import sys

import msgspec


class _JsonFormatter(logging.Formatter):
    """Our own lines come as JSON already; anything else is put into an object."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name == "trivium.access":
            return record.getMessage()
        line = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def configure(level: str) -> None:
    """Send everything from ``level`` on to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter())
    # Of every request to a server they write a line, bodies and all; of every one that fails a trace, and our own line
    # says what became of it.
    for chatty in ("opensearch", "opensearchpy", "httpx", "httpcore", "neo4j"):
        logging.getLogger(chatty).setLevel(logging.CRITICAL)
    # Nothing of ours prints thread, process, task or caller, and finding them out is half of what a line costs.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # as the documentation of logging has it, under "Optimization"
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
