"""What sources and priors said, kept for who asks the same of the same data: another page, other weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from adapters import Priors, Query, Retriever, Scope
from cache import Memo
from fusion import DocId, Ranking
from orchestrator.versions import State

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Remembered:
    """A source whose rankings are kept in ``memo`` for as long as ``state`` of their scope stays as it is."""

    source: Retriever
    memo: Memo[object, Ranking]
    state: Callable[[Scope], State]

    async def search(self, query: Query) -> Ranking:
        """See :class:`adapters.port.Retriever`."""
        key = (
            self.state(query.scope),
            query.scope,
            query.text,
            query.depth,
            # As text, not as they are: in Python 1.0 == True.
            _encode((query.access, query.filter)),
            None if query.vector is None else query.vector.tobytes(),
            query.near,
            query.expansions,
        )
        if not query.fresh and (kept := self.memo.get(key)) is not None:
            return kept
        ranking = await self.source.search(query)
        self.memo.put(key, ranking)
        return ranking


@dataclass(frozen=True, slots=True)
class RememberedPriors:
    """Priors whose centralities are kept likewise, for ``seconds`` at most: they are computed anew without a write."""

    priors: Priors
    memo: Memo[object, tuple[float, Mapping[DocId, float]]]
    state: Callable[[Scope], State]
    seconds: float
    clock: Callable[[], float]

    async def names(self, query: Query) -> bool:
        """See :class:`adapters.port.Priors`."""
        return await self.priors.names(query)

    async def centralities(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, float]:
        """See :class:`adapters.port.Priors`."""
        key = (self.state(scope), scope, tuple(ids))
        kept = self.memo.get(key)
        if kept is not None and self.clock() - kept[0] < self.seconds:
            return kept[1]
        values = await self.priors.centralities(scope, ids)
        self.memo.put(key, (self.clock(), values))
        return values
