"""What sources and priors said, kept for who asks the same of the same data: another page, other weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from adapters import Priors, Query, Retriever, Scope
from cache import Memo, key
from fusion import DocId, Ranking
from orchestrator.versions import State


@dataclass(frozen=True, slots=True)
class Remembered:
    """A source whose rankings are kept in ``memo`` while ``state`` of their scope stays as it is, for ``seconds`` at
    most: where nobody tells of a write, that bounds how long it is not seen.
    """

    source: Retriever
    memo: Memo[bytes, tuple[float, Ranking]]
    state: Callable[[Scope], State]
    seconds: float
    clock: Callable[[], float]

    async def search(self, query: Query) -> Ranking:
        """See :class:`adapters.port.Retriever`."""
        if query.remembered == "bypass":
            return await self.source.search(query)
        asked = key(
            self.state(query.scope),
            query.scope,
            query.text,
            query.depth,
            query.access,
            query.filter,
            None if query.vector is None else query.vector.tobytes(),
            query.near,
            query.expansions,
        )
        if query.remembered == "use" and (kept := self.memo.get(asked)) and self.clock() - kept[0] < self.seconds:
            return kept[1]
        ranking = await self.source.search(query)
        self.memo.put(asked, (self.clock(), ranking))
        return ranking


@dataclass(frozen=True, slots=True)
class RememberedPriors:
    """Priors whose centralities are kept likewise, for ``seconds`` at most: they are computed anew without a write."""

    priors: Priors
    memo: Memo[bytes, tuple[float, Mapping[DocId, float]]]
    state: Callable[[Scope], State]
    seconds: float
    clock: Callable[[], float]

    async def names(self, query: Query) -> bool:
        """See :class:`adapters.port.Priors`."""
        return await self.priors.names(query)

    async def centralities(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, float]:
        """See :class:`adapters.port.Priors`."""
        asked = key(self.state(scope), scope, tuple(ids))
        kept = self.memo.get(asked)
        if kept is not None and self.clock() - kept[0] < self.seconds:
            return kept[1]
        values = await self.priors.centralities(scope, ids)
        self.memo.put(asked, (self.clock(), values))
        return values
