"""What was wrong with somebody's JSON, and what would have been right, in a line."""

from __future__ import annotations

import re
from typing import get_args

from msgspec import DecodeError

from adapters.document import SENSITIVITIES
from adapters.filter import Filter
from cache import Use
from fusion import Collapse
from orchestrator.contract import SOURCES, Boost, Mode

_ALLOWED = {
    "mode": get_args(Mode),
    "sensitivity": SENSITIVITIES,
    "weights": SOURCES,
    "boosts": get_args(Boost),
    "cache": get_args(Use),
    "collapse": get_args(Collapse),
    "op": tuple(kind.__struct_config__.tag for kind in get_args(Filter)),
}
"""What msgspec's message on a value that is not among several leaves out, by the field that it names."""

_PATH = re.compile(r" - at (?:`key` in )?`\$([^`]*)`$")


def complaint(error: DecodeError | UnicodeDecodeError) -> str:
    """The message for whoever wrote it: the field, what it holds, and what is allowed."""
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: byte 0x{error.object[error.start]:02x} has no place there"
    message = str(error)
    path = _PATH.search(message)
    if path and message.startswith(("Invalid enum value", "Invalid value")):
        field = re.findall(r"[a-z_]+", path.group(1))[-1]
        if field in _ALLOWED:
            return f"{message}, allowed are {', '.join(map(str, _ALLOWED[field]))}"
    if "RFC3339" in message:
        return f"{message}, write 2026-01-31T12:00:00Z"
    return message
