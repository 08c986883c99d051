"""Asking a second time, or somebody else: where the first answer is slow, or was lost.

A read changes nothing, so asking again is safe; asking everything again would double the load of a server that is too
slow already. Hence a budget, earned by first attempts: Dean, Barroso, "The Tail at Scale", 2013 (hedged requests). A
spare store has none: it is another server, and without the documents there is no answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from adapters import (
    AdapterError,
    BadResponse,
    DocumentReader,
    Query,
    Record,
    RecordReader,
    Retriever,
    Scope,
    Unavailable,
)
from adapters.filter import Filter
from fusion import DocId, Ranking

T = TypeVar("T")

_MOST = 10.0
"""Attempts that can be saved up: a source that comes back after a quiet hour is not met by a storm."""
_SPARE_S = 0.02
"""Seconds that the first store has to give documents before the spare one is asked, too."""


class Budget:
    """Second attempts, earned by first ones.

    :param share: attempts earned by each request, in [0, 1].
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._saved = 1.0 if share else 0.0

    def earn(self) -> None:
        """A first attempt is made."""
        self._saved = min(self._saved + self._share, _MOST)

    def spend(self) -> bool:
        """Whether a second one may be."""
        if self._saved < 1.0:
            return False
        self._saved -= 1.0
        return True


@dataclass(frozen=True, slots=True)
class Again:
    """A source that is asked again, once, where it was out of reach, or talked nonsense; or has not answered yet.

    :param after_s: seconds without an answer, after which a second attempt is made beside the first; never, if 0.
    """

    source: Retriever
    budget: Budget
    after_s: float

    async def search(self, query: Query) -> Ranking:
        """See :class:`adapters.port.Retriever`. How long all of this may take is up to who asks."""
        self.budget.earn()

        def ask() -> Coroutine[Any, Any, Ranking]:
            return self.source.search(query)

        def may_ask_again(error: BaseException | None) -> bool:
            return isinstance(error, Unavailable | BadResponse | None) and self.budget.spend()

        return await _first_good(ask, ask, self.after_s or None, may_ask_again)


@dataclass(frozen=True, slots=True)
class Spared:
    """Documents from a store, and those of an answer from another one that has them, too, where the first cannot.

    :param whole: whether the spare one has taken every write: else what it holds may since have become a secret. May
        block.
    """

    first: DocumentReader
    spare: RecordReader
    whole: Callable[[], bool]

    async def fetch(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, Record]:
        """See :class:`adapters.port.RecordReader`."""

        async def instead() -> Mapping[DocId, Record]:
            if not await asyncio.to_thread(self.whole):
                raise Unavailable("the spare store of documents has not taken all writes yet")
            found = await self.spare.fetch(scope, ids)
            if len(found) < len(set(ids)):
                raise Unavailable("the spare store does not have all of these documents")
            return found

        return await _first_good(
            lambda: self.first.fetch(scope, ids),
            instead,
            _SPARE_S,
            lambda error: isinstance(error, AdapterError | None),
        )

    async def find(self, wanted: Filter, limit: int) -> list[Record]:
        """See :class:`adapters.port.DocumentReader`."""
        return await self.first.find(wanted, limit)

    async def sample(self, count: int) -> list[Record]:
        """See :class:`adapters.port.DocumentReader`."""
        return await self.first.sample(count)

    async def counts(self, field: str, wanted: Filter) -> Mapping[str, int]:
        """See :class:`adapters.port.DocumentReader`."""
        return await self.first.counts(field, wanted)


async def _first_good(
    first: Callable[[], Coroutine[Any, Any, T]],
    second: Callable[[], Coroutine[Any, Any, T]],
    after_s: float | None,
    may: Callable[[BaseException | None], bool],
) -> T:
    """What the first of two attempts to succeed gives; if none does, what the first raised.

    The second is begun when the first has failed, or has not ended after ``after_s`` seconds, and ``may`` allows it,
    which is told the error, if there was one. Whatever is under way at the end is cancelled.
    """
    attempts = [asyncio.ensure_future(first())]
    try:
        done, _ = await asyncio.wait(attempts, timeout=after_s)
        error = _error(attempts[0]) if done else None
        if (not done or error) and may(error):
            attempts.append(asyncio.ensure_future(second()))
        left = set(attempts)
        while left:
            done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                if not _error(each):
                    return each.result()
        return attempts[0].result()
    finally:
        for each in attempts:
            each.add_done_callback(_error)  # nobody asks what became of it
            each.cancel()


def _error(attempt: asyncio.Future[T]) -> BaseException | None:
    """What went wrong with an attempt that has ended."""
    return asyncio.CancelledError() if attempt.cancelled() else attempt.exception()
