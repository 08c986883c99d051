"""A bounded memo of values that are cheap to keep and dear to compute again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """The ``entries`` most recently used values, by key. Not for threads: one event loop owns it.

    :param entries: how many are kept; the least recently used goes first.
    :raises ValueError: if ``entries`` is not positive.
    """

    def __init__(self, entries: int) -> None:
        if entries < 1:
            raise ValueError(f"a memo of {entries} entries keeps nothing, allowed are 1 and more")
        self.hits = 0
        self.misses = 0
        self._entries = entries
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value, now the most recently used, or ``None``."""
        try:
            self._values.move_to_end(key)
        except KeyError:
            self.misses += 1
            return None
        self.hits += 1
        return self._values[key]

    def put(self, key: K, value: V) -> None:
        """Keep ``value`` as the most recently used."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._entries:
            self._values.popitem(last=False)
