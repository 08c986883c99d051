"""Filters for any index that can look a term up: every filterable value is one term, every filter asks for terms.

A label is ``field NUL kind value``. A number is written as 16 hexadecimal digits whose order is the order of the
numbers, and every beginning of those digits is a label too, so that a range of numbers is a few hundred labels
at most (a trie, as in Schindler, Diepenbroek: "Generic XML-based framework for metadata portals", 2008).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar, assert_never

from adapters.document import Scalar
from adapters.filter import And, Eq, Exists, Filter, In, Not, Or, Range, kind, seconds

_LONGEST = 512
"""Characters of a text that a term holds as it is; a longer one is held by its digest."""
_DIGITS = 16
_NOBODYS = ""
"""A label that no document has."""

T = TypeVar("T")


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


class Compiler(Protocol[T]):
    """What a backend has to know to take any filter: how it asks for labels, and how it combines questions."""

    def holds(self, labels: Sequence[str]) -> T:
        """The document has one of these labels, of which there is one at least."""
        ...

    def every(self, parts: Sequence[T]) -> T:
        """All of these hold; true if there are none."""
        ...

    def some(self, parts: Sequence[T]) -> T:
        """One of these holds; there is one at least."""
        ...

    def no(self, part: T) -> T:
        """This does not hold."""
        ...


def compile_filter(wanted: Filter, to: Compiler[T]) -> T:
    """A filter (in normal form) as a backend asks it."""
    match wanted:
        case Eq(field, value):
            return to.holds([_label(field, value)])
        case In(field, values) if values:
            return to.holds([_label(field, value) for value in values])
        case Range(field) if cover := list(_cover(wanted)):
            return to.holds([f"{field}\0n{prefix}" for prefix in cover])
        case In() | Range() | Or(()):
            return to.holds([_NOBODYS])
        case Exists(field):
            return to.holds([_presence(field)])
        case And(filters):
            return to.every([compile_filter(each, to) for each in filters])
        case Or(filters):
            return to.some([compile_filter(each, to) for each in filters])
        case Not(inner):
            return to.no(compile_filter(inner, to))
        case _:
            assert_never(wanted)


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
