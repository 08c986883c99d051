"""Filters on a keyword index: every filterable value is one term, so every filter is a query over terms.

A label is ``field NUL kind value``. A number is written as 16 hexadecimal digits whose order is the order of the
numbers, and every beginning of those digits is a label too, so that a range of numbers is a few hundred labels
at most (a trie, as in Schindler, Diepenbroek: "Generic XML-based framework for metadata portals", 2008).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import tantivy

from adapters.document import Scalar
from adapters.filter import And, Eq, Exists, Filter, In, Not, Or, Range, kind, seconds

_LONGEST = 512
"""Characters of a text that a term holds as it is; a longer one is held by its digest."""
_DIGITS = 16
_FEW = 16
"""Labels that are cheaper looked up one by one than as a set."""
_MUST, _SHOULD, _MUST_NOT = tantivy.Occur.Must, tantivy.Occur.Should, tantivy.Occur.MustNot


def labels(fields: Mapping[str, tuple[Scalar, ...]]) -> list[str]:
    """The terms of one document's fields."""
    found = {_presence(name) for name in fields}
    for name, values in fields.items():
        for value in values:
            label = _label(name, value)
            found.add(label)
            if kind(value) == "number":
                found.update(label[:-digits] for digits in range(1, _DIGITS))
    return sorted(found)


def compile_filter(schema: tantivy.Schema, wanted: Filter) -> tantivy.Query:
    """A query over the field ``labels`` that holds where ``wanted`` (in normal form) holds; its score means nothing."""
    query = tantivy.Query
    match wanted:
        case Eq(field, value):
            return query.term_query(schema, "labels", _label(field, value), "basic")
        case In(field, values):
            return _any(schema, [_label(field, value) for value in values])
        case Range(field):
            return _any(schema, [f"{field}\0n{prefix}" for prefix in _cover(wanted)])
        case Exists(field):
            return query.term_query(schema, "labels", _presence(field), "basic")
        case And(filters):
            parts = [(_MUST, compile_filter(schema, each)) for each in filters]
            return query.boolean_query(parts) if parts else query.all_query()
        case Or(filters):
            parts = [(_SHOULD, compile_filter(schema, each)) for each in filters]
            return query.boolean_query(parts) if parts else query.empty_query()
        case Not(inner):
            return query.boolean_query([(_MUST, query.all_query()), (_MUST_NOT, compile_filter(schema, inner))])
        case _:
            assert_never(wanted)


def _any(schema: tantivy.Schema, labels: Sequence[str]) -> tantivy.Query:
    """Whatever has one of these labels."""
    query = tantivy.Query
    if len(labels) > _FEW:
        return query.term_set_query(schema, "labels", labels)
    return query.boolean_query([(_SHOULD, query.term_query(schema, "labels", label, "basic")) for label in labels])


def _cover(bounds: Range) -> Iterator[str]:
    """The fewest beginnings of written numbers that hold all numbers in bounds, and no other."""
    low, high = 0, 2 ** (4 * _DIGITS) - 1
    if bounds.gte is not None:
        low = max(low, _sortable(seconds(bounds.gte)))
    if bounds.gt is not None:
        low = max(low, _sortable(seconds(bounds.gt)) + 1)
    if bounds.lte is not None:
        high = min(high, _sortable(seconds(bounds.lte)))
    if bounds.lt is not None:
        high = min(high, _sortable(seconds(bounds.lt)) - 1)
    while low <= high:
        digits = 0
        while digits < _DIGITS - 1 and low % 16 ** (digits + 1) == 0 and low + 16 ** (digits + 1) - 1 <= high:
            digits += 1
        yield f"{low:0{_DIGITS}x}"[: _DIGITS - digits]
        low += 16**digits


def _label(field: str, value: Scalar) -> str:
    match kind(value):
        case "number":
            return f"{field}\0n{_sortable(float(value)):0{_DIGITS}x}"
        case "truth":
            return f"{field}\0b{int(bool(value))}"
        case _:
            text = str(value)
            if len(text) > _LONGEST:
                text = "\0" + hashlib.sha256(text.encode()).hexdigest()
            return f"{field}\0t{text}"


def _presence(field: str) -> str:
    return f"{field}\0e"


def _sortable(number: float) -> int:
    """IEEE 754 doubles sort as their bits do, once the sign is turned: negatives inverted, positives flagged."""
    bits = int(struct.unpack(">Q", struct.pack(">d", number + 0.0))[0])  # + 0.0 makes -0.0 the same as 0.0
    return bits ^ 0xFFFF_FFFF_FFFF_FFFF if bits >> 63 else bits | 1 << 63
