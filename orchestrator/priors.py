"""What is known of documents whatever the query is, as factors on their scores; and how near the walk came to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from adapters import Priors
from fusion import DocId, Facts, Fused, Ranking, centrality, importance, recency, relationship
from orchestrator.request import Request
from orchestrator.settings import Settings
from orchestrator.timing import DAY_S

_BY_FACTS = ("importance", "recency")
_SHARE = 0.5
"""Of the time that is left, what a boost may take: the documents are still to be read."""


async def factors(
    request: Request, fused: Fused, facts: Mapping[DocId, Facts], priors: Priors, settings: Settings
) -> dict[str, dict[DocId, float]]:
    """Of each boost that is asked for, what it makes of each document. One that cannot be had is left out, and told."""
    made: dict[str, dict[DocId, float]] = {}
    for boost in request.plan.boosts:
        if not facts and boost in _BY_FACTS:  # most corpora have none, and a time limit costs more than a boost does
            made[boost] = {}
            continue
        async with request.optional("boosts", share=_SHARE):
            match boost:
                case "importance":
                    rated = ((id_, each.importance) for id_, each in facts.items() if each.importance is not None)
                    made[boost] = {id_: importance(value) for id_, value in rated}
                case "recency":
                    made[boost] = _recency(facts, request.plan.day)
                case "relationship":
                    made[boost] = _relationship(fused.rankings, settings.relationship_weight)
                case "centrality":
                    values = await priors.centralities(request.plan.query.scope, fused.ids)
                    weight = settings.centrality_weight
                    made[boost] = {id_: centrality(value, weight) for id_, value in values.items()}
                case _:
                    assert_never(boost)
    return made


def _recency(facts: Mapping[DocId, Facts], day: int) -> dict[DocId, float]:
    """By the age in days, counted from when ``day`` began: the same for all of that day."""
    dated = ((id_, each.created_at) for id_, each in facts.items() if each.created_at is not None)
    return {id_: recency((day * DAY_S - created) / DAY_S) for id_, created in dated}


def _relationship(rankings: Sequence[Ranking], weight: float) -> dict[DocId, float]:
    """By the walk, as far as there was one."""
    walk = next((each for each in rankings if each.source == "graph"), None)
    nearest = max(walk.scores, default=0.0) if walk else 0.0
    if walk is None or nearest <= 0:
        return {}
    return {
        id_: relationship(max(score, 0.0) / nearest, weight) for id_, score in zip(walk.ids, walk.scores, strict=True)
    }
