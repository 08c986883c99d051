"""The short form of a filter: ``{"collection": "notes", "year": {"gte": 2020}, "kind": ["a", "b"]}``.

Each field has a value, a list of values, or the bounds of a range, and all have to be true. A name that is no field of
a document is a key of its metadata.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from adapters.model.document import METADATA
from adapters.model.filter_limits import FIELDS
from adapters.model.spelling import allowed_names
from orchestrator.schema.decode import InvalidInput

BOUNDS = ("gt", "gte", "lt", "lte")
FULL_FORM = ("op", "field", "filter", "filters")
"""An object with one of these keys is a filter in its full form."""
_PART = re.compile(r"filter(?:\.filters\[(\d+)\])?\.(\w+)")
"""The path of a part of the full form of a flat filter."""


def is_flat(condition: object) -> TypeGuard[Mapping[str, object]]:
    """Whether a filter is in its short form."""
    return (
        isinstance(condition, dict)
        and bool(condition)
        and all(isinstance(key, str) and key not in FULL_FORM for key in condition)
    )


def name_of_part(path: str, condition: Mapping[str, object]) -> str:
    """What a path in the full form of a flat filter is in that flat filter: ``filter.year.gte`` for ``filter.gte``.

    :param path: ``filter.filters[1].gte``, or ``filter.gte`` for a flat filter of one field; others stay as they are.
    """
    if not (found := _PART.match(path)):
        return path
    name = list(condition)[int(found[1] or 0)]
    bound = f".{found[2]}" if found[2] in BOUNDS else ""
    return f"filter.{name}{bound}{path[found.end() :]}"


def in_full_form(condition: Any) -> Any:
    """A filter with each short form in it replaced; what is no filter stays as it is.

    :raises InvalidInput: if a short form has no condition, or a range in it a bound that there is not.
    """
    match condition:
        case {"filters": list() as filters}:
            return {**condition, "filters": [in_full_form(each) for each in filters]}
        case {"filter": inner}:
            return {**condition, "filter": in_full_form(inner)}
        case dict() if not condition:
            raise InvalidInput('filter: {} has no condition; leave it out, or write one such as {"language": "en"}')
        case dict() if is_flat(condition):
            conditions = [_condition(name, value) for name, value in condition.items()]
            return conditions[0] if len(conditions) == 1 else {"op": "and", "filters": conditions}
        case _:
            return condition


def _condition(name: str, value: object) -> dict[str, object]:
    field = name if name in FIELDS or name.startswith(METADATA) else f"{METADATA}{name}"
    match value:
        case list() | tuple():
            return {"op": "in", "field": field, "values": value}
        case dict():
            if unknown := next((each for each in value if each not in BOUNDS), None):
                raise InvalidInput(
                    f"filter.{name}: unknown bound {str(unknown)[:80]!r}, {allowed_names(unknown, BOUNDS)}"
                )
            return {"op": "range", "field": field, **value}
        case _:
            return {"op": "eq", "field": field, "value": value}
