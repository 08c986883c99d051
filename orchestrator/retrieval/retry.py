"""One retry of a failed search, within a budget.

A read changes nothing, so a retry is safe; retrying every search would double the load of a server that is overloaded
already. Hence the budget, which grows with first attempts (Google: "Site Reliability Engineering", 2016, chapter 21,
"Handling Overload": per-client retry budget).
"""

from __future__ import annotations

from dataclasses import dataclass

from adapters import BadResponse, Unavailable
from adapters.ports import Retriever, SourceQuery
from fusion.columns import Ranking

_MAX_SAVED = 10.0
"""Maximum number of saved retries, so that a server does not receive a burst of them after an outage."""


class RetryBudget:
    """The number of retries that are allowed now.

    :param ratio: retries per first attempt, in [0, 1].
    """

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio
        self._saved = 1.0 if ratio else 0.0

    def deposit(self) -> None:
        """Count a first attempt."""
        self._saved = min(self._saved + self._ratio, _MAX_SAVED)

    def withdraw(self) -> bool:
        """Count a retry if it is allowed now. Returns whether it is."""
        if self._saved < 1.0:
            return False
        self._saved -= 1.0
        return True


@dataclass(frozen=True, slots=True)
class RetryingRetriever:
    """A source whose search is repeated once after a lost connection or an invalid response."""

    retriever: Retriever
    budget: RetryBudget

    async def search(self, query: SourceQuery) -> Ranking:
        """See :class:`adapters.ports.Retriever`. The caller sets the deadline."""
        self.budget.deposit()
        try:
            return await self.retriever.search(query)
        except (Unavailable, BadResponse):
            if not self.budget.withdraw():
                raise
        return await self.retriever.search(query)
