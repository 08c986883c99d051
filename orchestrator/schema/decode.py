"""Errors of JSON input in one line: the field, its value, and what is allowed."""

from __future__ import annotations

import re
from typing import get_args

from msgspec import DecodeError

from adapters.model.document import SENSITIVITIES
from adapters.model.filter import Filter
from cache import CacheMode
from fusion import CollapseMode
from orchestrator.schema.search import BoostName

_ALLOWED = {
    "sensitivity": SENSITIVITIES,
    "boosts": get_args(BoostName),
    "cache": get_args(CacheMode),
    "collapse": get_args(CollapseMode),
    "op": tuple(kind.__struct_config__.tag for kind in get_args(Filter)),
}
"""Allowed values by field: msgspec's message leaves them out."""

_PATH = re.compile(r" - at (?:`key` in )?`\$([^`]*)`$")
_MAX_CHARS = 400
"""Maximum length of a message: it quotes the input, which may be long."""


def describe_decode_error(error: DecodeError | UnicodeDecodeError) -> str:
    """The message for the caller that sent the input."""
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: unexpected byte 0x{error.object[error.start]:02x}"
    message = str(error)
    described = _printable(message)
    path = _PATH.search(message)
    if path and message.startswith(("Invalid enum value", "Invalid value")):
        field = re.findall(r"[a-z_]+", path.group(1))[-1]
        if field in _ALLOWED:
            return f"{described}, allowed are {', '.join(map(str, _ALLOWED[field]))}"
    if message.startswith("Invalid RFC3339"):
        return f"{described}, write 2026-01-31T12:00:00Z"
    return described


def _printable(message: str) -> str:
    """The message on one line, without control characters and without the middle of a long value."""
    if len(message) > _MAX_CHARS:
        message = f"{message[: _MAX_CHARS // 2]}…{message[-_MAX_CHARS // 2 :]}"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in message)
