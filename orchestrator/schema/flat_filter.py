"""The short form of a filter: ``{"collection": "notes", "year": {"gte": 2020}, "kind": ["a", "b"]}``.

Each field has a value, a list of values, or the bounds of a range, and all have to be true. A name that is no field of
a document is a key of its metadata.
"""

from __future__ import annotations

from typing import Any

from adapters.model.document import METADATA
from adapters.model.filter_limits import FIELDS

BOUNDS = ("gt", "gte", "lt", "lte")
FULL_FORM = ("op", "field", "filter", "filters")
"""An object with one of these keys is a filter in its full form."""


def in_full_form(condition: Any) -> Any:
    """A filter with each short form in it replaced; what is no filter stays as it is."""
    match condition:
        case {"filters": list() as filters}:
            return {**condition, "filters": [in_full_form(each) for each in filters]}
        case {"filter": inner}:
            return {**condition, "filter": in_full_form(inner)}
        case dict() if condition and all(isinstance(key, str) and key not in FULL_FORM for key in condition):
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
            return {"op": "range", "field": field, **value}
        case _:
            return {"op": "eq", "field": field, "value": value}
