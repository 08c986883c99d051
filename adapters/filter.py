"""What a search may return: a small algebra, its normal form, and its meaning.

A field may hold several values (``tags``); a test on it holds if any value passes. ``Not`` is the complement,
so ``Not(Eq("language", "en"))`` also holds for a document without a language. Strings, numbers and booleans
never equal each other (``"1"``, ``1``, ``true``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeAlias, assert_never

from msgspec import Struct

from adapters.document import SENSITIVITIES, Scalar, Scope, Sensitivity, plain


class Eq(Struct, frozen=True, forbid_unknown_fields=True, tag_field="op", tag="eq"):
    """Some value of ``field`` is ``value``."""

    field: str
    value: Scalar


class In(Struct, frozen=True, forbid_unknown_fields=True, tag_field="op", tag="in"):
    """Some value of ``field`` is among ``values``."""

    field: str
    values: tuple[Scalar, ...]


class Range(Struct, frozen=True, forbid_unknown_fields=True, tag_field="op", tag="range"):
    """Some number of ``field`` lies within the bounds that are given. Bounds of ``created_at`` may be RFC 3339."""

    field: str
    gt: float | datetime | None = None
    gte: float | datetime | None = None
    lt: float | datetime | None = None
    lte: float | datetime | None = None


class Exists(Struct, frozen=True, forbid_unknown_fields=True, tag_field="op", tag="exists"):
    """``field`` has a value."""

    field: str


class And(Struct, frozen=True, forbid_unknown_fields=True, tag_field="op", tag="and"):
    """Every one holds; ``And(())`` holds for all documents."""

    filters: tuple[Filter, ...] = ()


class Or(Struct, frozen=True, forbid_unknown_fields=True, tag_field="op", tag="or"):
    """At least one holds; ``Or(())`` holds for none."""

    filters: tuple[Filter, ...] = ()


class Not(Struct, frozen=True, forbid_unknown_fields=True, tag_field="op", tag="not"):
    """The one inside does not hold."""

    filter: Filter


Filter: TypeAlias = Eq | In | Range | Exists | And | Or | Not

EVERYTHING = And(())
NOTHING = Or(())

FIELDS = (
    "id",
    "collection",
    "parent_id",
    "chunk_index",
    "url",
    "created_at",
    "importance",
    "sensitivity",
    "tags",
    "language",
)
"""What a user's filter may name, besides ``metadata.<key>``."""

MAX_NODES = 256
MAX_VALUES = 4_096
_VALUES_A_NODE = 64
"""So many values count as one condition more: what a filter costs must not grow with how it is cut up."""
MAX_DEPTH = 16
_METADATA = re.compile(r"metadata\..{1,256}", re.DOTALL)


def access(scope: Scope, clearance: Sensitivity) -> Filter:
    """What a caller may see at all: its scope, at or under its clearance."""
    visible = SENSITIVITIES[: SENSITIVITIES.index(clearance) + 1]
    return And((Eq("tenant", scope.tenant), Eq("environment", scope.environment), In("sensitivity", visible)))


def check(wanted: Filter, depth: int = 1) -> int:
    """Refuse what a user may not ask; the number of nodes otherwise.

    :raises ValueError: for an unknown field, a value that is no number where one is needed, or more nodes,
        values or nesting than is allowed; the message names what is.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"filter: nested deeper than the {MAX_DEPTH} levels allowed")
    match wanted:
        case And(filters) | Or(filters):
            nodes = 1 + sum(check(each, depth + 1) for each in filters)
        case Not(inner):
            nodes = 1 + check(inner, depth + 1)
        case In(field, values):
            _check_field(field)
            nodes = 1 + len(values) // _VALUES_A_NODE
            if len(values) > MAX_VALUES:
                raise ValueError(f"filter: {len(values)} values for {field!r}, allowed are {MAX_VALUES}")
        case Range(field):
            _check_field(field)
            bounds = [b for b in (wanted.gt, wanted.gte, wanted.lt, wanted.lte) if b is not None]
            if not bounds:
                raise ValueError(f"filter: the range of {field!r} has no bound, give gt, gte, lt or lte")
            if any(isinstance(bound, datetime) for bound in bounds) and field != "created_at":
                raise ValueError(f"filter: the bounds of {field!r} must be numbers; only created_at takes dates")
            if any(isinstance(bound, datetime) and bound.tzinfo is None for bound in bounds):
                raise ValueError(f"filter: a date of {field!r} is without a time zone, write 2026-01-31T12:00:00Z")
            nodes = 1
        case Eq(field) | Exists(field):
            _check_field(field)
            nodes = 1
        case _:
            assert_never(wanted)
    if nodes > MAX_NODES:
        raise ValueError(f"filter: more than the {MAX_NODES} conditions allowed")
    return nodes


def _check_field(field: str) -> None:
    if field not in FIELDS and not _METADATA.fullmatch(field):
        raise ValueError(f"filter: unknown field {field[:80]!r}, allowed are {', '.join(FIELDS)}, metadata.<key>")


def normal(wanted: Filter) -> Filter:
    """The one form of all filters that say the same by the laws applied here, so that it can be a key.

    Nested ``And`` and ``Or`` are flattened, sorted and freed of repetition; ``Eq`` becomes ``In``; dates become
    seconds; double negation goes; what is always or never true is folded away.
    """
    match wanted:
        case Eq(field, value):
            return In(field, (plain(value),))
        case In(field, values):
            distinct = {(type(value).__name__, value) for value in map(plain, values)}
            return In(field, tuple(value for _, value in sorted(distinct))) if distinct else NOTHING
        case Range():
            return _normal_range(wanted)
        case Exists():
            return wanted
        case Not(inner):
            folded = normal(inner)
            if folded in {EVERYTHING, NOTHING}:
                return NOTHING if folded == EVERYTHING else EVERYTHING
            return folded.filter if isinstance(folded, Not) else Not(folded)
        case And(filters):
            return _normal_list(And, filters, neutral=EVERYTHING, absorbing=NOTHING)
        case Or(filters):
            return _normal_list(Or, filters, neutral=NOTHING, absorbing=EVERYTHING)
        case _:
            assert_never(wanted)


def conjunction(one: Filter, other: Filter) -> Filter:
    """Both, which are in normal form; the outcome is, too, but for the order of its parts."""
    if NOTHING in {one, other}:
        return NOTHING
    parts = [part for each in (one, other) for part in (each.filters if isinstance(each, And) else (each,))]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _normal_range(wanted: Range) -> Filter:
    """At most one lower and one upper bound, in seconds where dates were given."""
    lower = [(b, strict) for b, strict in ((_epoch(wanted.gt), 1), (_epoch(wanted.gte), 0)) if b is not None]
    upper = [(b, -strict) for b, strict in ((_epoch(wanted.lt), 1), (_epoch(wanted.lte), 0)) if b is not None]
    low, high = max(lower, default=None), min(upper, default=None)
    return Range(
        wanted.field,
        gt=low[0] if low and low[1] else None,
        gte=low[0] if low and not low[1] else None,
        lt=high[0] if high and high[1] else None,
        lte=high[0] if high and not high[1] else None,
    )


def seconds(bound: float | datetime) -> float:
    """A bound as the number that it is compared as: a date in seconds since the epoch."""
    return bound.timestamp() if isinstance(bound, datetime) else float(bound)


def _epoch(bound: float | datetime | None) -> float | None:
    return None if bound is None else seconds(bound)


def _normal_list(kind: type[And] | type[Or], filters: tuple[Filter, ...], neutral: Filter, absorbing: Filter) -> Filter:
    flat: dict[str, Filter] = {}
    for each in map(normal, filters):
        if each == absorbing:
            return absorbing
        for part in each.filters if isinstance(each, kind) else (each,):
            flat[repr(part)] = part
    parts = tuple(flat[key] for key in sorted(flat))
    if not parts:
        return neutral
    return parts[0] if len(parts) == 1 else kind(parts)


Fields: TypeAlias = Mapping[str, tuple[Scalar, ...]]


def matches(wanted: Filter, values: Fields) -> bool:
    """What a filter means, told on one document's fields. Every backend's compiler must agree with this."""
    return predicate(wanted)(values)


def predicate(wanted: Filter) -> Callable[[Fields], bool]:
    """The meaning of a filter as a function, for who asks it of many documents."""
    match wanted:
        case Eq(field, value):
            return lambda values: _meet(values.get(field, ()), (value,))
        case In(field, among):
            if all(isinstance(value, str) for value in among):
                texts = frozenset(among)
                return lambda values: not texts.isdisjoint(values.get(field, ()))
            return lambda values: _meet(values.get(field, ()), among)
        case Range(field):
            return lambda values: any(_within(each, wanted) for each in values.get(field, ()))
        case Exists(field):
            return lambda values: bool(values.get(field))
        case And(filters):
            parts = [predicate(each) for each in filters]
            return lambda values: all(part(values) for part in parts)
        case Or(filters):
            parts = [predicate(each) for each in filters]
            return lambda values: any(part(values) for part in parts)
        case Not(inner):
            holds = predicate(inner)
            return lambda values: not holds(values)
        case _:
            assert_never(wanted)


def kind(value: Scalar) -> str:
    """``text``, ``truth`` or ``number``: values of different kinds are never equal."""
    if isinstance(value, bool):
        return "truth"
    return "text" if isinstance(value, str) else "number"


def _meet(held: tuple[Scalar, ...], among: tuple[Scalar, ...]) -> bool:
    """Whether some value is in both; in Python 1.0 == True, so equal is not yet the same."""
    for one in held:
        for other in among:
            if one == other and kind(one) == kind(other):
                return True
    return False


def _within(value: Scalar, bounds: Range) -> bool:
    if isinstance(value, str | bool):
        return False
    gt, gte, lt, lte = (_epoch(b) for b in (bounds.gt, bounds.gte, bounds.lt, bounds.lte))
    return (
        value > (-math.inf if gt is None else gt)
        and value >= (-math.inf if gte is None else gte)
        and value < (math.inf if lt is None else lt)
        and value <= (math.inf if lte is None else lte)
    )
