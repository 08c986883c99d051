"""Lists and counts the documents of the embedded index. Everything here blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from adapters.engine.columns import Flags
from adapters.engine.segment import Segment
from adapters.engine.segment_set import SegmentSet
from adapters.model.facets import Facet, counted, edge_numbers, most_frequent, ranges_of
from adapters.model.index_terms import is_short, value_term
from adapters.ports.listing import SortKey
from fusion.rank_fields import Ints


def in_order(segments: SegmentSet, flags: Flags, sort: SortKey | None) -> Ints:
    """The flagged positions in an order, equal ones by id."""
    by_id = segments.by_id
    passing = by_id[flags[by_id]]
    if sort is None:
        return passing
    keys = _sort_keys(segments, flags, sort)[passing]
    return passing[np.argsort(keys, kind="stable")]


def _sort_keys(segments: SegmentSet, flags: Flags, sort: SortKey) -> Ints:
    """By position, a number whose order is that of the values of flagged documents; the largest one without a value."""
    parts = []
    terms: set[str] = set()
    for base, segment, chosen in _segments(segments, flags):
        values, rows, codes = segment.columns.values(sort.field, chosen)
        of_segment = [value_term(sort.field, value) for value in values]
        terms.update(of_segment)
        parts.append((of_segment, rows + base, codes))
    order = {term: key for key, term in enumerate(sorted(terms, reverse=sort.descending))}
    keys = np.full(len(segments), len(order))
    for of_segment, positions, codes in parts:
        np.minimum.at(keys, positions, np.array([order[term] for term in of_segment], np.int64)[codes])
    return keys


def _segments(segments: SegmentSet, flags: Flags) -> Iterator[tuple[int, Segment, Flags]]:
    """Each segment with its first position and the flags of its rows."""
    for base, segment in zip(segments.bases[:-1].tolist(), segments.segments, strict=True):
        yield base, segment, flags[base : base + len(segment)]


def facets(segments: SegmentSet, flags: Flags, sizes: Mapping[str, int]) -> dict[str, Facet]:
    """The number of flagged documents by value of each field."""
    return {field: _facet(segments, flags, field, size) for field, size in sizes.items()}


def _facet(segments: SegmentSet, flags: Flags, field: str, size: int) -> Facet:
    counts: Counter[bool | str] = Counter()
    positions: list[Ints] = []
    numbers = []
    for base, segment, chosen in _segments(segments, flags):
        values, rows, codes = segment.columns.values(field, chosen)
        pairs = np.unique(rows * len(values) + codes)  # a document may have a value twice
        by_code = np.bincount(pairs % len(values), minlength=len(values)).tolist()
        found = zip(values, by_code, strict=True)
        counts.update({value: count for value, count in found if count and isinstance(value, bool | str)})
        number_rows, doubles = segment.columns.numbers(field)
        positions.append(number_rows[chosen[number_rows]].astype(np.int64) + base)
        numbers.append(doubles[chosen[number_rows]])
    listed = most_frequent({value: count for value, count in counts.items() if is_short(value)})[:size]
    others = counts.total() - sum(each.count for each in listed)
    all_numbers = np.concatenate([np.zeros(0), *numbers])
    if not len(all_numbers):
        return Facet(tuple(listed), (), others)
    ranges = ranges_of(field, float(all_numbers.min()), float(all_numbers.max()), size)
    bins = np.searchsorted(edge_numbers(ranges), all_numbers, side="right") - 1
    pairs = np.unique(np.concatenate(positions) * len(ranges) + bins)
    in_ranges = np.bincount(pairs % len(ranges), minlength=len(ranges)).tolist()
    return Facet(tuple(listed), counted(ranges, in_ranges), others)
