"""Filters: a small algebra of conditions on documents, its normal form, and its meaning.

A field may have several values (``tags``); a condition on it is true if any value passes. ``Not`` is the complement, so
``Not(Eq("language", "en"))`` is also true of a document without a language. Texts, numbers and booleans never equal
each other (``"1"``, ``1``, ``true``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias, assert_never

from msgspec import Struct

from adapters.model import numbers
from adapters.model.document import METADATA, Scalar, Scope, plain
from adapters.model.protection import HIGHEST_CLEARANCE, SENSITIVITIES, Sensitivity, Viewer, visible_levels

Bound: TypeAlias = int | float | datetime
"""A bound of a range."""


class Eq(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="op", tag="eq"):
    """Some value of ``field`` is ``value``."""

    field: str
    value: Scalar


class In(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="op", tag="in"):
    """Some value of ``field`` is among ``values``."""

    field: str
    values: tuple[Scalar, ...]


class Range(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="op", tag="range"):
    """Some number of ``field`` is within the bounds. A bound that is ``None`` does not apply.

    Bounds of ``created_at`` may be dates, in JSON as in RFC 3339.
    """

    field: str
    gt: Bound | None = None
    gte: Bound | None = None
    lt: Bound | None = None
    lte: Bound | None = None


class Exists(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="op", tag="exists"):
    """``field`` has a value."""

    field: str


class And(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="op", tag="and"):
    """All of ``filters`` are true; ``And(())`` is true of all documents."""

    filters: tuple[Filter, ...] = ()


class Or(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="op", tag="or"):
    """At least one of ``filters`` is true; ``Or(())`` is true of none."""

    filters: tuple[Filter, ...] = ()


class Not(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="op", tag="not"):
    """``filter`` is not true."""

    filter: Filter


Filter: TypeAlias = Eq | In | Range | Exists | And | Or | Not

EVERYTHING = And(())
NOTHING = Or(())


def access(scope: Scope, viewer: Viewer) -> Filter:
    """The documents that a viewer may see: those of its scope for which :meth:`Viewer.sees` is true."""
    levels = In("sensitivity", visible_levels(viewer.clearance))
    conditions: list[Filter] = [Eq("tenant", scope.tenant), Eq("environment", scope.environment), levels]
    if viewer.is_narrowed:
        # Not ``Eq("visibility", "tenant")``: documents of earlier versions have no value.
        allowed: list[Filter] = [Not(In("visibility", ("team", "private")))]
        if viewer.user is not None:
            allowed.append(Eq("owner", viewer.user))
        if viewer.teams:
            allowed.append(And((Eq("visibility", "team"), In("team", viewer.teams))))
        conditions.append(Or(tuple(allowed)))
    return And(tuple(conditions))


def clearance_of(condition: Filter) -> Sensitivity:
    """The clearance in :func:`access`, in normal form or not; the highest if there is no condition on it."""
    for each in condition.filters if isinstance(condition, And) else (condition,):
        if isinstance(each, In) and each.field == "sensitivity":
            return max((level for level in SENSITIVITIES if level in each.values), key=SENSITIVITIES.index)
    return HIGHEST_CLEARANCE


def normal(condition: Filter) -> Filter:
    """The normal form of a filter. Filters that are equal by the rules below have the same one: it can be a cache key.

    Nested ``And`` and ``Or`` are flattened and sorted, and duplicates in them removed; ``Eq`` becomes ``In``; dates
    become seconds; double negation is removed; conditions that are always or never true are folded away.
    """
    match condition:
        case Eq(field, value):
            return In(field, (plain(value),))
        case In(field, values):
            distinct = {(type(value).__name__, value) for value in map(plain, values)}
            return In(field, tuple(value for _, value in sorted(distinct))) if distinct else NOTHING
        case Range():
            return _normal_range(condition)
        case Exists():
            return condition
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
            assert_never(condition)


def conjunction(one: Filter, other: Filter) -> Filter:
    """``And`` of two filters in normal form; in normal form itself, apart from the order of its conditions."""
    if NOTHING in {one, other}:
        return NOTHING
    both = [inner for each in (one, other) for inner in (each.filters if isinstance(each, And) else (each,))]
    return both[0] if len(both) == 1 else And(tuple(both))


def _normal_range(condition: Range) -> Filter:
    """A range with at most one lower and one upper bound, the stricter one of each; dates become seconds."""
    lower = [(b, strict) for b, strict in ((_epoch(condition.gt), 1), (_epoch(condition.gte), 0)) if b is not None]
    upper = [(b, -strict) for b, strict in ((_epoch(condition.lt), 1), (_epoch(condition.lte), 0)) if b is not None]
    low, high = max(lower, default=None), min(upper, default=None)
    return Range(
        condition.field,
        gt=low[0] if low and low[1] else None,
        gte=low[0] if low and not low[1] else None,
        lt=high[0] if high and high[1] else None,
        lte=high[0] if high and not high[1] else None,
    )


def seconds(bound: Bound) -> float:
    """The number that a bound is compared as: for a date, seconds since the epoch."""
    return bound.timestamp() if isinstance(bound, datetime) else numbers.plain(bound)


def _epoch(bound: Bound | None) -> float | None:
    return None if bound is None else seconds(bound)


def _normal_list(kind: type[And] | type[Or], filters: tuple[Filter, ...], neutral: Filter, absorbing: Filter) -> Filter:
    flat: dict[str, Filter] = {}
    for each in map(normal, filters):
        if each == absorbing:
            return absorbing
        for inner in each.filters if isinstance(each, kind) else (each,):
            flat[repr(inner)] = inner
    distinct = tuple(flat[key] for key in sorted(flat))
    if not distinct:
        return neutral
    return distinct[0] if len(distinct) == 1 else kind(distinct)


Fields: TypeAlias = Mapping[str, tuple[Scalar, ...]]
"""Values of one document by field: see :func:`adapters.model.document.fields`."""


def matches(condition: Filter, values: Fields) -> bool:
    """Whether a filter is true of a document with these fields: the definition that every source has to follow."""
    return predicate(condition)(values)


def metadata_keys(condition: Filter) -> frozenset[str]:
    """The keys of metadata that a filter tests."""
    match condition:
        case And(filters) | Or(filters):
            return frozenset(key for each in filters for key in metadata_keys(each))
        case Not(inner):
            return metadata_keys(inner)
        case Eq(field) | In(field) | Range(field) | Exists(field):
            return frozenset([field.removeprefix(METADATA)] if field.startswith(METADATA) else [])
        case _:
            assert_never(condition)


def predicate(condition: Filter) -> Callable[[Fields], bool]:
    """:func:`matches` as a function of the fields, for a filter that is applied to many documents."""
    match condition:
        case Eq(field, value):
            return lambda values: _intersect(values.get(field, ()), (value,))
        case In(field, among):
            if all(isinstance(value, str) for value in among):
                texts = frozenset(among)
                return lambda values: not texts.isdisjoint(values.get(field, ()))
            return lambda values: _intersect(values.get(field, ()), among)
        case Range(field):
            return lambda values: any(_within(each, condition) for each in values.get(field, ()))
        case Exists(field):
            return lambda values: bool(values.get(field))
        case And(filters):
            return _all_of([predicate(each) for each in filters])
        case Or(filters):
            inner_predicates = [predicate(each) for each in filters]
            return lambda values: any(each(values) for each in inner_predicates)
        case Not(inner):
            is_true = predicate(inner)
            return lambda values: not is_true(values)
        case _:
            assert_never(condition)


def _all_of(predicates: Sequence[Callable[[Fields], bool]]) -> Callable[[Fields], bool]:
    """The conjunction, without :func:`all`, which takes twice as long for a few: every hit is checked."""

    def is_true(values: Fields) -> bool:
        for each in predicates:  # noqa: SIM110
            if not each(values):
                return False
        return True

    return is_true


def kind(value: Scalar) -> str:
    """``text``, ``truth`` or ``number``: values of different kinds are never equal."""
    if isinstance(value, bool):
        return "truth"
    return "text" if isinstance(value, str) else "number"


def _intersect(one_side: tuple[Scalar, ...], other_side: tuple[Scalar, ...]) -> bool:
    """Whether some value is in both. Their kinds are compared, too: in Python 1.0 == True."""
    for one in one_side:
        for other in other_side:
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
