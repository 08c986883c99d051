"""What schemathesis cannot know from the schema alone."""

from __future__ import annotations

import json
from typing import Any

import schemathesis

_TIMEOUT_MS = 10_000
_INTEGERS = ("timeout_ms", "limit", "neighbors", "hops", "min_generation")
_NOT_IN_A_SCHEMA = {"cursor", "filter", "replace"}
"""Parameters: what the service gave out, JSON within a text, and what requires that no line has an empty text."""


@schemathesis.serializer("application/x-ndjson")
def ndjson(_: Any, value: Any) -> bytes:
    """One object a line; a value that is no list is one line."""
    lines = value if isinstance(value, list) else [value]
    return b"\n".join(json.dumps(line).encode() for line in lines)


@schemathesis.hook
def before_call(_: Any, case: schemathesis.Case[Any], __: Any) -> None:
    """Changes only what a schema cannot express: no cursor that the service did not give out, no documents to be like
    that do not exist, no time limit too short for any response, not every weight 0, and integers written as such (a
    schema accepts 10.0 as one).
    """
    if isinstance(case.body, dict):
        case.body = {name: _answerable(name, value) for name, value in case.body.items()}
    if case.query:
        case.query = {name: value for name, value in case.query.items() if name not in _NOT_IN_A_SCHEMA}


def _has_the_form_of_like(value: dict[str, Any]) -> bool:
    ids, collection, text = value.get("ids", []), value.get("collection"), value.get("text", "")
    names = [*ids, "any" if collection is None else collection] if isinstance(ids, list) else [None]
    are_names = all(isinstance(name, str) and 1 <= len(name) <= 512 for name in names)
    return are_names and len(names) <= 11 and isinstance(text, str) and set(value) <= {"ids", "collection", "text"}


def _answerable(name: str, value: Any) -> Any:
    match name, value:
        case _, float() if value.is_integer() and name in _INTEGERS:
            return _answerable(name, int(value))
        case "cursor", str():
            return None
        case "timeout_ms", int() if value is not True and 0 < value <= _TIMEOUT_MS:
            return _TIMEOUT_MS
        case "like", dict() if _has_the_form_of_like(value):
            return {"text": "what others are like"}
        case "weights", dict() if value and not any(value.values()):
            return {}
        case _:
            return value
