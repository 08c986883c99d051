"""Lists and counts the documents of the embedded index. Everything here blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from adapters.engine.columns import Flags
from adapters.engine.segment import Segment
from adapters.engine.segment_set import SegmentSet
from adapters.model.facet_ranges import counted, edge_numbers, most_frequent, ranges_of
from adapters.model.facets import Facet
from adapters.model.index_terms import is_short, value_term
from adapters.ports.listing import SortKey
from fusion.rank_fields import Ints

_MAX_SORTED = 5_000
"""Up to so many documents are sorted by id by themselves: the order of all takes a second for a million."""
_RESTS = 1_024
"""More than the largest rest of a number, see :func:`adapters.model.numbers.split`."""
_TRUTHS = 2
_LAST = np.iinfo(np.int64).max


def first_in_order(segments: SegmentSet, flags: Flags, sort: SortKey | None, count: int) -> Ints:
    """The first flagged positions in an order, equal ones by id."""
    passing = np.flatnonzero(flags)
    keys = _sort_keys(segments, flags, sort)[passing] if sort else np.zeros(len(passing), np.int64)
    if 0 < count < len(passing):
        nearest = keys <= np.partition(keys, count - 1)[count - 1]  # with all that equal the last one
        passing, keys = passing[nearest], keys[nearest]
    if len(passing) <= _MAX_SORTED:
        ids = segments.ids(passing)
        by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64)
    else:
        rows = np.full(len(segments), -1)
        rows[passing] = np.arange(len(passing))
        by_id = rows[segments.by_id]
        by_id = by_id[by_id >= 0]
    order = by_id[np.argsort(keys[by_id], kind="stable")]
    return passing[order[:count]]


def _sort_keys(segments: SegmentSet, flags: Flags, sort: SortKey) -> Ints:
    """By position, a number whose order is that of the values of flagged documents; the largest one without a value."""
    positions, ranks = _ranks(segments, flags, sort.field)
    keys = np.full(len(segments), _LAST)
    np.minimum.at(keys, positions, -ranks if sort.descending else ranks)
    return keys


def _ranks(segments: SegmentSet, flags: Flags, field: str) -> tuple[Ints, Ints]:
    """The position of each value of a field, and a rank whose order is that of the values, whatever their kind."""
    positions: list[Ints] = []
    ranks: list[Ints] = []
    of_numbers, of_texts = [], []
    for base, segment, chosen in _segments(segments, flags):
        rows, truths = segment.columns.chosen_truths(field, chosen)
        positions.append(rows + base)
        ranks.append(truths)
        rows, doubles, rests = segment.columns.chosen_numbers(field, chosen)
        of_numbers.append((rows + base, doubles, rests))
        texts, rows, codes = segment.columns.chosen_texts(field, chosen)
        of_texts.append((rows + base, [value_term(field, text) for text in texts], codes))
    distinct = np.unique(np.concatenate([np.zeros(0), *(doubles for _, doubles, _ in of_numbers)]))
    for rows, doubles, rests in of_numbers:
        positions.append(rows)
        ranks.append(_TRUTHS + distinct.searchsorted(doubles) * _RESTS + rests)
    after_numbers = _TRUTHS + len(distinct) * _RESTS
    order = {term: rank for rank, term in enumerate(sorted({term for _, terms, _ in of_texts for term in terms}))}
    for rows, terms, codes in of_texts:
        positions.append(rows)
        ranks.append(after_numbers + np.array([order[term] for term in terms], np.int64)[codes])
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *positions]), np.concatenate([none, *ranks])


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
        texts, rows, codes = segment.columns.chosen_texts(field, chosen)
        counts.update(dict(zip(texts, _documents(rows, codes, len(texts)), strict=True)))
        of_truths = _documents(*segment.columns.chosen_truths(field, chosen), _TRUTHS)
        counts.update(dict(zip((False, True), of_truths, strict=True)))
        rows, doubles, _ = segment.columns.chosen_numbers(field, chosen)
        positions.append(rows + base)
        numbers.append(doubles)
    values = most_frequent({value: count for value, count in counts.items() if count and is_short(value)})
    others = sum(each.count for each in values[size:])
    all_numbers = np.concatenate([np.zeros(0), *numbers])
    if not len(all_numbers):
        return Facet(tuple(values[:size]), (), others)
    ranges = ranges_of(field, float(all_numbers.min()), float(all_numbers.max()), size)
    bins = np.searchsorted(edge_numbers(ranges), all_numbers, side="right") - 1
    in_ranges = _documents(np.concatenate(positions), bins, len(ranges))
    return Facet(tuple(values[:size]), counted(ranges, in_ranges), others)


def _documents(rows: Ints, codes: Ints, size: int) -> list[int]:
    """The number of rows with each code; a row that has a code twice counts once.

    :param rows: in ascending order.
    """
    if (rows[1:] == rows[:-1]).any():
        codes = np.unique(rows * size + codes) % size
    counts: list[int] = np.bincount(codes, minlength=size).tolist()
    return counts
