"""What schemathesis cannot know by the schema alone."""

from __future__ import annotations

import json
from typing import Any

import schemathesis

_PATIENCE_MS = 10_000


@schemathesis.serializer("application/x-ndjson")
def ndjson(_: Any, value: Any) -> bytes:
    """One object a line; what is no list is one line."""
    lines = value if isinstance(value, list) else [value]
    return b"\n".join(json.dumps(line).encode() for line in lines)


@schemathesis.hook
def before_call(_: Any, case: schemathesis.Case, __: Any) -> None:
    """No cursor that nobody gave out, which is refused whatever it looks like; no request that nobody could answer in
    its time; not every weight 0: a schema cannot say any of that. All else as it was made up.
    """
    body = case.body
    if not isinstance(body, dict):
        return
    if isinstance(body.get("cursor"), str):
        body = body | {"cursor": None}
    if type(body.get("timeout_ms")) is int and 0 < body["timeout_ms"] <= _PATIENCE_MS:
        body = body | {"timeout_ms": _PATIENCE_MS}
    if isinstance(weights := body.get("weights"), dict) and weights and not any(weights.values()):
        body = body | {"weights": {}}
    case.body = body
