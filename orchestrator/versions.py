"""What must be the same for a kept answer to be the right one: the state of the data, as far as this process knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias

from adapters import Scope
from adapters.fingerprint import fingerprint
from cache import Numbers

_ALL = "*"

State: TypeAlias = tuple[str | int, ...]
"""Differs whenever the data may."""


class Stamped(Protocol):
    """Whoever knows what this process sees."""

    def stamp(self) -> int:
        """Another number whenever searches of this process may find something else."""
        ...


class Versions:
    """The state of each scope.

    :param seen: what this process sees of its own files; empty where all data is on servers, and Redis tells.
    :param place: where those files are: what others see of theirs is something else.
    :param generations: the numbers in Redis, if there is one.
    """

    def __init__(self, seen: Sequence[Stamped], place: str, generations: Numbers | None) -> None:
        self._seen = seen
        self._place = place
        self._generations = generations

    def now(self, scope: Scope) -> State:
        """As far as this process knows."""
        state: State = (self._place, *(each.stamp() for each in self._seen))
        if self._generations is None:
            return state
        return *state, self._generations.known(_name(scope)), self._generations.known(_ALL)

    async def learn(self, scope: Scope) -> bool:
        """Make sure that there is something to know; whether others mean the same by :meth:`now`."""
        return self._generations is None or await self._generations.learn((_name(scope), _ALL))

    async def written(self, scopes: Iterable[Scope], others: bool = False) -> None:
        """Documents of these scopes were written: nothing older is served by this process from here on.

        :param others: whether those of others may have been, too: what a store had not taken before.
        """
        if self._generations:
            await self._generations.bump([*map(_name, scopes), *([_ALL] if others else [])])


@lru_cache(maxsize=10_000)
def _name(scope: Scope) -> str:
    return fingerprint(scope.tenant, scope.environment)
