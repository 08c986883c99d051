"""The fusion strategies that plans name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, TypeAlias

from fusion.strategy import SeededStrategy, Strategy, parse

FoundStrategy: TypeAlias = tuple[Strategy, SeededStrategy | None]
"""A strategy, and what chooses the seeds of a second stage, if there is one."""


class Correction(Strategy, Protocol):
    """A strategy that changes the order of another one, whose seeds it has."""

    @property
    def base(self) -> Strategy:
        """The other strategy."""
        ...


@dataclass(frozen=True, slots=True)
class Strategies:
    """The strategies that every service has, and those that this one has learned.

    :param learned: by the text that names them, in a plan or in the settings.
    """

    learned: Mapping[str, FoundStrategy] = field(default_factory=dict)

    @classmethod
    def with_learned(cls, name: str, strategy: Correction) -> Strategies:
        """With a learned strategy, by the name that the settings have for it and by that of its content."""
        return cls(dict.fromkeys((name, str(strategy)), (strategy, _seeded(strategy.base))))

    def find(self, text: str) -> FoundStrategy:
        """A strategy by its text.

        :raises ValueError: as :func:`fusion.strategy.parse`.
        """
        return self.learned.get(text) or parse_strategy(text)


NAMED = Strategies()
"""The strategies that every service has."""


@lru_cache(maxsize=256)
def parse_strategy(text: str) -> FoundStrategy:
    """A strategy that every service has. It is cached, because checking a protocol is slow.

    :raises ValueError: as :func:`fusion.strategy.parse`.
    """
    strategy = parse(text)
    return strategy, _seeded(strategy)


def _seeded(strategy: Strategy) -> SeededStrategy | None:
    return strategy if isinstance(strategy, SeededStrategy) else None
