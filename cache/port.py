"""What is shared with other processes, as seen from this one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from cache.policy import Entry
from cache.stats import Stats


class Numbers(Protocol):
    """Numbers that grow with every write, by name, as far as this process knows."""

    def known(self, name: str) -> int:
        """0 if it has never heard of it."""
        ...

    async def learn(self, names: Collection[str]) -> bool:
        """Ask for what was never heard of; whether all are known now."""
        ...

    async def bump(self, names: Iterable[str]) -> None:
        """A write was acknowledged under these names. Never fails."""
        ...

    async def run(self) -> None:
        """Keep up with others, for ever."""
        ...


class SecondLevel(Protocol):
    """A store that others share. Neither method raises, and neither takes longer than its own small deadline."""

    @property
    def stats(self) -> Stats:
        """What it did so far."""
        ...

    @property
    def state(self) -> str:
        """Of its breaker: ``closed``, ``open`` or ``half-open``."""
        ...

    async def get(self, key: bytes, now: float) -> Entry | None:
        """The entry, if it is there and not expired at ``now``."""
        ...

    def put(self, key: bytes, entry: Entry, now: float) -> None:
        """Keep it, soon."""
        ...
