"""The values of a filter of a request, in the form in which documents have them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import assert_never

from adapters.model.dates import moment
from adapters.model.document import METADATA, Scalar, has_words
from adapters.model.filter import EVERYTHING, And, Bound, Eq, Exists, Filter, In, Not, Or, Range, kind, seconds
from adapters.model.numbers import MAX_WHOLE, MIN_WHOLE
from adapters.model.protection import SENSITIVITIES, VISIBILITIES
from adapters.model.spelling import allowed_names
from adapters.text.forms import normal_form

NUMBER_FIELDS = ("chunk_index", "importance")
DATE_FIELDS = ("created_at",)
"""Of the other fields, those of the metadata have values of any kind, and all others have texts."""
NAMED_VALUES: Mapping[str, Sequence[str]] = {"sensitivity": SENSITIVITIES, "visibility": VISIBILITIES}
"""Fields whose values are names, and all of these."""
_LARGEST = int(sys.float_info.max)


def typed(condition: Filter) -> Filter:
    """A filter whose values have the kinds of their fields: dates as seconds, texts trimmed where documents' are.

    :raises ValueError: if a field cannot have a value of such a kind; the message names what it can have.
    """
    match condition:
        case Eq("visibility", value):
            return _of_visibility((_value("visibility", value),))
        case In("visibility", values):
            return _of_visibility(tuple(_value("visibility", value) for value in values))
        case Exists("visibility"):
            return EVERYTHING
        case Eq(field, value):
            return Eq(stored_name(field), _value(field, value))
        case In(field, values):
            return In(stored_name(field), tuple(_value(field, value) for value in values))
        case Range(field):
            given = {name: getattr(condition, name) for name in ("gt", "gte", "lt", "lte")}
            bounds = {name: None if bound is None else _bound(field, bound) for name, bound in given.items()}
            return Range(stored_name(field), **bounds)
        case Exists(field):
            return Exists(stored_name(field))
        case And(filters):
            return And(tuple(map(typed, filters)))
        case Or(filters):
            return Or(tuple(map(typed, filters)))
        case Not(inner):
            return Not(typed(inner))
        case _:
            assert_never(condition)


def _of_visibility(values: tuple[Scalar, ...]) -> Filter:
    """Documents of earlier versions have no value, and are for their tenant."""
    if "tenant" in values:
        return Not(In("visibility", tuple(each for each in VISIBILITIES if each not in values)))
    return In("visibility", values)


def _value(field: str, value: Scalar) -> Scalar:
    if field in DATE_FIELDS:
        return _seconds(field, value)
    if field in NUMBER_FIELDS or (field.startswith(METADATA) and kind(value) == "number"):
        return _number(field, value)
    if field.startswith(METADATA):
        return normal_form(value.strip()) if isinstance(value, str) else value
    if not isinstance(value, str):
        raise ValueError(f"filter: {value!r} for {field!r}, which has texts")  # noqa: TRY004
    if (allowed := NAMED_VALUES.get(field)) and value not in allowed:
        raise ValueError(f"filter: {value[:80]!r} for {field!r}, {allowed_names(value, allowed)}")
    value = value.strip() if field == "tags" else value
    return normal_form(value) if has_words(field) else value


def stored_name(field: str) -> str:
    """The name of a field as documents have it: keys of the metadata in their normal form."""
    return normal_form(field) if field.startswith(METADATA) else field


def _bound(field: str, bound: Bound) -> float:
    if field in DATE_FIELDS:
        return _seconds(field, bound)
    if field not in NUMBER_FIELDS and not field.startswith(METADATA):
        raise ValueError(f"filter: a range of {field!r}, which has texts; a range is for numbers and dates")
    return _number(field, bound)


def _number(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"filter: {str(value)[:80]!r} for {field!r}, which has numbers")  # noqa: TRY004
    if isinstance(value, int) and not MIN_WHOLE <= value <= MAX_WHOLE:  # no document has it
        return float(max(-_LARGEST, min(value, _LARGEST)))
    return value


def _seconds(field: str, value: object) -> float:
    try:
        return seconds(moment(value))
    except ValueError as error:
        raise ValueError(f"filter: {field}: {error}") from error
