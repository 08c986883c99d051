"""The limits of a filter of a request: its fields, its bounds, and the cost of its conditions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import assert_never

from adapters.model.document import MAX_VALUE_CHARS, Scalar
from adapters.model.filter import And, Eq, Exists, Filter, In, Not, Or, Range
from adapters.model.spelling import allowed_names

FIELDS = (
    "id",
    "collection",
    "parent_id",
    "chunk_index",
    "url",
    "created_at",
    "importance",
    "sensitivity",
    "visibility",
    "owner",
    "team",
    "tags",
    "topics",
    "section",
    "window_id",
    "language",
)
"""The fields that a filter of a request may name, besides ``metadata.<key>``."""

MAX_NODES = 256
MAX_VALUES = 4_096
_VALUES_PER_NODE = 64
"""This many values of ``In`` count as one more condition, so that one long list costs as much as many conditions."""
_FREE_BYTES = 64
"""Bytes at the start of each text that do not count: as many as an id usually has."""
_BYTES_PER_NODE = 1_024
"""This many further bytes of texts count as one more condition: they are sent to servers and hashed for caches."""
_NODES_PER_RANGE = 4
"""A range counts as this many conditions: it is searched as a few hundred terms."""
_BYTES_PER_RANGE = 32
"""This many bytes of the name of its field count as one more range: each term contains the name."""
MAX_DEPTH = 16
_METADATA = re.compile(r"metadata\..{1,256}", re.DOTALL)


def check(condition: Filter, depth: int = 1) -> int:
    """Validate a filter of a request.

    :param depth: nesting level of ``condition``, from 1.
    :returns: its number of conditions, by what they cost.
    :raises ValueError: for an unknown field, a wrong bound, or more conditions, values or nesting than allowed; the
        message names what is allowed.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"filter: nested deeper than the {MAX_DEPTH} levels allowed")
    match condition:
        case And(filters) | Or(filters):
            nodes = 1
            for each in filters:
                nodes += check(each, depth + 1)
                _check_nodes(nodes)  # early, not after thousands of them
        case Not(inner):
            nodes = 1 + check(inner, depth + 1)
        case _:
            check_field(condition.field)
            nodes = _cost(condition)
    _check_nodes(nodes)
    return nodes


def _cost(condition: Eq | In | Range | Exists) -> int:
    """The number of conditions that this one counts as."""
    match condition:
        case Eq(field, value):
            return 1 + _text_bytes(field, (value,)) // _BYTES_PER_NODE
        case In(field, values):
            if len(values) > MAX_VALUES:
                raise ValueError(f"filter: {len(values)} values for {field!r}, allowed are {MAX_VALUES}")
            return 1 + max(len(values) // _VALUES_PER_NODE, _text_bytes(field, values) // _BYTES_PER_NODE)
        case Range(field):
            _check_bounds(condition)
            return _NODES_PER_RANGE * (1 + len(field.encode("utf-8", "surrogatepass")) // _BYTES_PER_RANGE)
        case Exists():
            return 1
        case _:
            assert_never(condition)


def _check_nodes(nodes: int) -> None:
    if nodes > MAX_NODES:
        raise ValueError(
            f"filter: more than the {MAX_NODES} conditions allowed; a range counts as {_NODES_PER_RANGE}, and again "
            f"for {_BYTES_PER_RANGE} bytes of its field, {_VALUES_PER_NODE} values or {_BYTES_PER_NODE} bytes as one"
        )


def _check_bounds(condition: Range) -> None:
    field = condition.field
    bounds = [b for b in (condition.gt, condition.gte, condition.lt, condition.lte) if b is not None]
    if not bounds:
        raise ValueError(f"filter: the range of {field!r} has no bound, give gt, gte, lt or lte")


def _text_bytes(field: str, values: Sequence[Scalar]) -> int:
    """The bytes of texts in UTF-8 that count.

    :raises ValueError: if one is longer than any that is stored.
    """
    texts = [value for value in values if isinstance(value, str)]
    if (longest := max(map(len, texts), default=0)) > MAX_VALUE_CHARS:
        raise ValueError(f"filter: a value of {field!r} has {longest} characters, allowed are {MAX_VALUE_CHARS}")
    return sum(max(0, len(text.encode("utf-8", "surrogatepass")) - _FREE_BYTES) for text in texts)


def check_field(field: str, where: str = "filter") -> None:
    """Check the name of a field in a part of a request.

    :raises ValueError: if there is no such field; the message names what is allowed.
    """
    if field not in FIELDS and not _METADATA.fullmatch(field):
        key = f"; a key of the metadata is written metadata.{field[:80]}" if field.isidentifier() else ""
        allowed = allowed_names(field, FIELDS, "metadata.<key>")
        raise ValueError(f"{where}: unknown field {field[:80]!r}, {allowed}{key}")
