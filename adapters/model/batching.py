"""Long lists in slices, for requests and reads of a limited size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Consecutive slices of ``items`` with at most ``size`` items each."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def sized_batches(items: Sequence[T], size_bytes: Callable[[T], int], max_bytes: int) -> Iterator[Sequence[T]]:
    """Consecutive slices of ``items`` of at most ``max_bytes`` each; a larger item is alone."""
    start = total = 0
    for number, item in enumerate(items):
        size = size_bytes(item)
        if number > start and total + size > max_bytes:
            yield items[start:number]
            start, total = number, 0
        total += size
    if start < len(items):
        yield items[start:]
