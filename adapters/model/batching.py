"""Long lists in slices, for requests and reads of a limited size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Consecutive slices of ``items`` with at most ``size`` items each."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
