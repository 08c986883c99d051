"""Facets: how many documents have each value of a field."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

MAX_FACETS, MAX_FACET_SIZE = 10, 100
"""Fields of a request, and values or ranges of each."""


class FacetValue(Struct, frozen=True, gc=False):
    """A text or a truth value, and the number of documents that have it."""

    value: bool | str
    count: int


class FacetRange(Struct, frozen=True, gc=False):
    """The number of documents with a number from ``gte`` to below ``lt``; ``null``: there is no such number."""

    gte: float | datetime
    lt: float | datetime | None
    count: int


class Facet(Struct, frozen=True, gc=False):
    """The values of one field, the most frequent first, and the ranges of its numbers or dates that have documents.

    :param others: the counts of the values that are not listed, added up.
    :param max_error: by how many documents a count may be too small; 0: all are exact.
    """

    values: tuple[FacetValue, ...]
    ranges: tuple[FacetRange, ...]
    others: int
    max_error: int = 0
