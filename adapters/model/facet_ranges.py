"""How values are counted: the order of texts, and the ranges of numbers and dates."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import count, pairwise
from typing import TypeAlias

from adapters.model.dates import FIRST_S, LAST_S
from adapters.model.facets import FacetRange, FacetValue
from adapters.model.filter import Range, seconds
from adapters.model.filter_values import DATE_FIELDS

_SECONDS = (1, 60, 3_600, 86_400)
"""The shorter intervals of dates."""
_MONTHS = (1, 3, 12, 120)
"""The longer ones. After them come a century, two, four, and so on."""
_CENTURY = 1_200

_Bounds: TypeAlias = Sequence[tuple[float | datetime, float | datetime | None]]
"""Lower and upper bounds."""


def most_frequent(counts: Mapping[bool | str, int]) -> list[FacetValue]:
    """The values in the order of a facet: those of equal counts by themselves, truth values first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], isinstance(item[0], str), item[0]))
    return [FacetValue(value, number) for value, number in ordered]


def ranges_of(field: str, low: float, high: float, size: int) -> list[Range]:
    """At most ``size`` ranges that cover the numbers of a field, in order.

    All have the same width: 1, 2 or 5 times a power of ten, 1 and more if both numbers are whole. Dates are divided at
    the beginning of every second, minute, hour, day, month, quarter, year, decade or century, in UTC.

    :param low: the smallest number.
    :param high: the largest one.
    :raises ValueError: if it is smaller.
    """
    if low > high:
        raise ValueError("the largest number is smaller than the smallest one")
    edges = _date_edges if field in DATE_FIELDS else _number_edges
    # No single range of such a width has numbers on both sides of 0.
    bounds: _Bounds = edges(low, high, max(size, 2))
    if len(bounds) > size:
        bounds = [(bounds[0][0], bounds[-1][1])]
    return [Range(field, gte=gte, lt=lt) for gte, lt in bounds]


def counted(ranges: Sequence[Range], counts: Sequence[int]) -> tuple[FacetRange, ...]:
    """The ranges of :func:`ranges_of` that have documents."""
    pairs = zip(ranges, counts, strict=True)
    return tuple(FacetRange(each.gte, each.lt, number) for each, number in pairs if number and each.gte is not None)


def _number_edges(low: float, high: float, size: int) -> _Bounds:
    for step in _steps(Fraction(low), Fraction(high), size):
        first, last = math.floor(Fraction(low) / step), math.floor(Fraction(high) / step)
        if last - first >= size:
            continue
        edges = [_double(step * index) for index in range(first, last + 2)]
        # Edges are doubles: of very narrow ranges they may be equal, or on the other side of a number.
        if edges[0] <= low and high < edges[-1] and all(one < two for one, two in pairwise(edges)):
            bounds = [None if edge == math.inf else edge for edge in edges[1:]]
            return [(max(edge, -sys.float_info.max), bound) for edge, bound in zip(edges, bounds, strict=False)]
    raise AssertionError("the steps have no end")


def _steps(low: Fraction, high: Fraction, size: int) -> Iterator[Fraction]:
    """Widths of ranges, from one that is too small."""
    is_whole = low.denominator == high.denominator == 1
    exponent = 0
    if span := high - low:
        exponent = math.floor(math.log10(span.numerator) - math.log10(span.denominator) - math.log10(size)) - 1
    for power in count(max(exponent, 0) if is_whole else exponent):
        yield from (mantissa * Fraction(10) ** power for mantissa in (1, 2, 5))


def _double(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _date_edges(low: float, high: float, size: int) -> _Bounds:
    low, high = (min(max(each, FIRST_S), LAST_S) for each in (low, high))  # the last ones are rounded to later doubles
    for unit in _SECONDS:
        first, last = math.floor(low / unit), math.floor(high / unit)
        if last - first < size:
            edges = [_date(index * unit) for index in range(first, last + 2)]
            return list(zip([edge for edge in edges if edge], edges[1:], strict=False))
    low_month, high_month = _month(low), _month(high)
    for months in (*_MONTHS, *(_CENTURY * 2**power for power in range(8))):
        first, last = low_month // months, high_month // months
        if last - first < size:
            break
    starts = [_month_start(index * months) for index in range(first, last + 2)]
    return list(zip([start for start in starts if start], starts[1:], strict=False))


def _date(timestamp: float) -> datetime | None:
    """The date; ``None`` after the last one."""
    try:
        return datetime.fromtimestamp(timestamp, UTC)
    except (OverflowError, ValueError):
        return None


def _month(timestamp: float) -> int:
    """The month, counted from the beginning of the year 0."""
    date = datetime.fromtimestamp(timestamp, UTC)
    return date.year * 12 + date.month - 1


def _month_start(month: int) -> datetime | None:
    """The beginning of a month; ``None`` after the last one, and the first date that there is before it."""
    year = month // 12
    if year > datetime.max.year:
        return None
    return datetime(max(year, 1), month % 12 + 1 if year else 1, 1, tzinfo=UTC)


def edge_numbers(ranges: Sequence[Range]) -> list[float]:
    """The lower bounds of ranges as the numbers that a field has."""
    return [float(seconds(each.gte)) for each in ranges if each.gte is not None]
