"""Names of entities: which a text has, and when two are the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol


class NameFinder(Protocol):
    """Finds given names in texts."""

    def __len__(self) -> int:
        """Number of names that are looked for."""
        ...

    def mentioned(self, text: str) -> Sequence[str]:
        """The names in a text, each once, in the order of their first occurrence. Blocks: 10 MB take a second."""
        ...


class NameRules(Protocol):
    """What is a name."""

    def normalize(self, name: str) -> str:
        """The form in which names are compared; empty if nothing is left."""
        ...

    def extract(self, text: str) -> tuple[str, ...]:
        """The names that a text mentions, each once."""
        ...

    def finder(self, names: Iterable[str]) -> NameFinder:
        """What finds these names."""
        ...
