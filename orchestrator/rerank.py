"""The last word on the order of the best hits, if somebody who reads them is asked for it and answers in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from adapters import SENSITIVITIES, Reranker, Sensitivity
from orchestrator.contract import Reranked, SearchHit
from orchestrator.request import Request

_SHARE = 0.8
"""Of the time that is left, what a reranker may take: what comes after it is to be read, too."""


@dataclass(frozen=True, slots=True)
class Reranking:
    """What a reranker is given, and how long it has.

    ``top``: hits at most. ``chars``: of each hit, and ``budget_chars`` of all together, which are shared evenly.
    ``clearance``: texts above it are not sent, for the reranker may be somebody else's.
    """

    reranker: Reranker | None
    top: int
    chars: int
    budget_chars: int
    timeout_s: float
    clearance: Sensitivity

    async def order(
        self, hits: Sequence[SearchHit], sensitivities: Sequence[Sensitivity], request: Request
    ) -> list[SearchHit]:
        """The hits as the reranker orders them; where it fails they stand as they are, and the answer says so.

        Only the hits that it is given change places, among themselves. What it does not name keeps its order, behind
        what it names.
        """
        ordered = list(hits)
        if self.reranker is None:
            request.degrade("rerank", "no reranker is configured: TRIVIUM_RERANKER names one")
            return ordered
        highest = SENSITIVITIES.index(self.clearance)
        places = [n for n, held in enumerate(sensitivities[: self.top]) if SENSITIVITIES.index(held) <= highest]
        if not places:
            return ordered
        length = min(self.chars, self.budget_chars // len(places))
        passages = [_passage(hits[place], length) for place in places]
        async with request.optional("rerank", share=_SHARE, seconds=self.timeout_s):
            answer = await self.reranker.rerank(request.plan.query.text, passages)
            if answer.unsound:
                request.degrade("rerank", answer.unsound)
            named = set(answer.order)
            behind = [number for number in range(len(places)) if number not in named]
            for rank, (place, number) in enumerate(zip(places, [*answer.order, *behind], strict=True), start=1):
                given = Reranked(rank, answer.scores.get(number)) if number in named else msgspec.UNSET
                ordered[place] = msgspec.structs.replace(hits[places[number]], rerank=given)
        return ordered


def _passage(hit: SearchHit, length: int) -> str:
    return f"{hit.title}\n{hit.text}"[:length] if hit.title else hit.text[:length]
