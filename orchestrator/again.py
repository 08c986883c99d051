"""Asking a source a second time: where its first answer is slow, or was lost, and only as often as a budget allows.

A search changes nothing, so asking again is safe; asking everything again would double the load of a server that is
too slow already. Hence a budget, earned by requests: Dean, Barroso, "The Tail at Scale", 2013 (hedged requests).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from adapters import BadResponse, Query, Retriever, Unavailable
from fusion import Ranking

_MOST = 10.0
"""Attempts that can be saved up: a source that comes back after a quiet hour is not met by a storm."""


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
        try:
            return await (self._hedged(query) if self.after_s else self.source.search(query))
        except (Unavailable, BadResponse):
            if not self.budget.spend():
                raise
            return await self.source.search(query)

    async def _hedged(self, query: Query) -> Ranking:
        """The first good answer of two; the first error, if there is none."""
        attempts = {asyncio.ensure_future(self.source.search(query))}
        try:
            done, _ = await asyncio.wait(attempts, timeout=self.after_s)
            if not done and self.budget.spend():
                attempts.add(asyncio.ensure_future(self.source.search(query)))
            left = attempts
            while True:
                done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                good = next((each for each in done if not each.exception()), None)
                if good or not left:
                    return (good or done.pop()).result()
        finally:
            for each in attempts:
                each.cancel()
