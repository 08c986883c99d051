"""Mixes the ranking of a request with that of another profile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import msgspec
import numpy as np

from cache import hash_key
from fusion.doc_ids import doc_id
from orchestrator.execution.budget import INTERLEAVING
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import AllSourcesFailed, Page, Ranked, Retrieved
from orchestrator.planning.interleaving import begins
from orchestrator.planning.plan import Plan
from orchestrator.results.draft import Drafted, entries, team_draft
from orchestrator.results.response_body import execution_hash
from orchestrator.schema.search import Degraded

_OF_ONE = "the hits are of one profile"

Run: TypeAlias = Callable[[Plan], Awaitable[tuple[Retrieved, Ranked, list[Degraded]]]]
"""Searches and ranks."""
Hydrate: TypeAlias = Callable[[Plan, Ranked], Awaitable[Page]]
"""Reads the documents of a page."""


@dataclass(frozen=True, slots=True)
class Interleaved:
    """Two rankings in one.

    :param plans: of the first ranking, and of the other one; ``rankings`` likewise.
    :param mixed_with: a hash of how the other ranking was computed: it has to be the same on every page.
    """

    plans: tuple[Plan, Plan]
    rankings: tuple[Ranked, Ranked]
    draft: Sequence[Drafted]
    mixed_with: bytes

    async def page(self, hydrate: Hydrate) -> Page:
        """The page of the first plan; each document is read, and checked, under the plan of its ranking.

        :raises AllSourcesFailed: if the documents cannot be read.
        """
        page = self.plans[0].page
        chosen = self.draft[page.offset : page.offset + page.limit]
        parts = [await self._part(hydrate, number, chosen) for number in range(2)]
        read = [
            {
                doc_id(hit.id, hit.collection): (hit, level)
                for hit, level in zip(part.hits, part.sensitivities, strict=True)
            }
            for part in parts
        ]
        hits, sensitivities, profiles = [], [], []
        for each in chosen:
            number = 0 if each.is_first else 1
            ranked = self.rankings[number]
            (id_,) = ranked.fused.candidates.ids(ranked.rows[each.place : each.place + 1])
            if id_ in read[number]:
                hit, sensitivity = read[number][id_]
                hits.append(hit)
                sensitivities.append(sensitivity)
                profiles.append(self.plans[number].profile if each.counts else None)
        return Page(
            tuple(hits),
            tuple(sensitivities),
            page.offset + len(chosen),
            len(self.draft),
            sum(part.deleted for part in parts),
            sum(part.withheld for part in parts),
            profiles=tuple(profiles),
        )

    async def _part(self, hydrate: Hydrate, number: int, chosen: Sequence[Drafted]) -> Page:
        plan, ranked = self.plans[number], self.rankings[number]
        places = [each.place for each in chosen if each.is_first == (number == 0)]
        page = msgspec.structs.replace(plan.page, offset=0, limit=len(places))
        rows = ranked.rows[np.asarray(places, np.int64)]
        return await hydrate(msgspec.structs.replace(plan, page=page), replace(ranked, rows=rows))


async def interleaved(
    plan: Plan, ranked: Ranked, run: Run, context: SearchContext
) -> tuple[Interleaved | None, list[Degraded]]:
    """The ranking of a plan with that of its other plan; or why that one could not be computed as a whole.

    :param ranked: the ranking of the plan.
    """
    other = plan.other
    if other is None or len(ranked.unsure):
        return None, []
    with context.timings.stage("interleave"):
        async with context.best_effort("interleave", INTERLEAVING) as attempt:
            try:
                retrieved, second, failures = await run(other)
            except AllSourcesFailed as error:
                return None, [context.degraded("interleave", f"{_OF_ONE}: {error}")]
    if reasons := [each.reason for each in attempt.failures or (*retrieved.degraded, *failures)]:
        return None, [context.degraded("interleave", f"{_OF_ONE}: {'; '.join(reasons)}")]
    if len(second.unsure):
        return None, []
    collapse = plan.ranking.collapse
    draft = team_draft(entries(ranked, collapse), entries(second, collapse), lambda number: begins(plan, number))
    mixed_with = hash_key(execution_hash(other, retrieved, second), other.ranking.depth, retrieved.encoder)
    return Interleaved((plan, other), (ranked, second), draft, mixed_with), []
