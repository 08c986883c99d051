"""Settings that suit a data set: chosen on one half of its queries, tested on the other.

The search is a steepest ascent: each setting is changed to each value of a short list, the best change is applied, and
so on while the mean over the training half rises. The outcome counts as a gain only if it is significant in a paired
test on the other half: among many candidates, one is always better on the queries that it was chosen on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import get_args

from msgspec import Struct

from adapters.model.sources import SOURCES
from orchestrator.auth.principal import Principal
from orchestrator.evaluation.comparison import SIGNIFICANCE, Difference, compare
from orchestrator.evaluation.judged_runs import descending_scores, judged_ids
from orchestrator.evaluation.judgments import JudgedQueries
from orchestrator.evaluation.measures import MAIN_MEASURE, mean, measure_run
from orchestrator.evaluation.runs import make_request
from orchestrator.evaluation.searched_index import ranked, require_complete
from orchestrator.planning.defaults import default_profile
from orchestrator.schema.search import BoostName
from orchestrator.service.search import SearchService
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import PREFIX, written

_MIN_QUERIES = 20
"""Minimum number of judged queries: half of fewer cannot show a significant difference."""

SEARCH_SPACE: Mapping[str, tuple[object, ...]] = {
    "fusion": (
        *(f"joint_walk(base={base}, slope={slope})" for base in (1, 3, 6) for slope in (4, 8, 12, 16, 24)),
        *(f"rrf(k={k})" for k in (10, 30, 60, 100)),
    ),
    "weights": tuple({source.name: weight} for source in SOURCES for weight in (0.25, 0.5, 1.0, 2.0, 4.0)),
    "boosts": ({}, *({name: strength} for name in get_args(BoostName) for strength in (0.1, 0.3, 1.0))),
    "centrality_weight": (0.02, 0.05, 0.1, 0.2),
}
"""The values that are tried, by setting. A weight is changed for one source at a time."""


class TooFewQueries(ValueError):
    """There are too few judged queries to tune on; the message gives their number."""


class TuningResult(Struct, frozen=True):
    """The settings that changed, and their gain on the queries that they were chosen on and on the others.

    :param tried: number of candidates.
    """

    dataset: str
    changed: dict[str, object]
    tried: int
    training: Difference
    held_out: Difference

    @property
    def objection(self) -> str:
        """Why the changed settings are not to be used; empty if the gain on the held-out half is significant."""
        if not self.changed:
            return "no candidate is better on the training half than the settings as they are"
        return objection_to(self.held_out)


def objection_to(held_out: Difference) -> str:
    """Why a difference on the held-out half is no reason for a change; empty if it is a significant gain."""
    if held_out.difference <= 0:
        return f"on the held-out half it is no gain: {held_out.difference:+.4f}"
    if held_out.p >= SIGNIFICANCE:
        return (
            f"on the held-out half the gain of {held_out.difference:+.4f} may be chance: its p is "
            f"{held_out.p:.4f}, needed is less than {SIGNIFICANCE:g}"
        )
    return ""


def halves(judged: JudgedQueries) -> tuple[list[str], list[str]]:
    """The ids of the queries to choose on, and of those to test on.

    :raises TooFewQueries: if there are fewer than 20.
    """
    if len(judged.queries) < _MIN_QUERIES:
        raise TooFewQueries(
            f"{judged.name} has {len(judged.queries)} judged queries, tuning needs at least {_MIN_QUERIES}"
        )
    return train_test_split(judged.queries)


def train_test_split(queries: Iterable[str]) -> tuple[list[str], list[str]]:
    """Split ids into two halves. The result does not depend on their order."""
    shuffled = sorted(queries, key=lambda id_: hashlib.sha256(id_.encode()).digest())
    return sorted(shuffled[::2]), sorted(shuffled[1::2])


async def tune(
    service: Service,
    judged: JudgedQueries,
    begin_round: Callable[[int, int], AbstractContextManager[Callable[[int], None]]],
) -> TuningResult:
    """Search the space.

    :param begin_round: called with the number of a round, from 1, and the number of its candidates; what it returns is
        called with 1 for each candidate that was tried.
    :raises TooFewQueries: if there are fewer than 20 judged queries.
    """
    training, held_out = halves(judged)
    start, principal = service.settings, service.anonymous

    async def values_of(settings: Settings, queries: Iterable[str]) -> dict[str, float]:
        return await measured(service.search.with_settings(settings), principal, judged, queries)

    best, best_values = start, await values_of(start, training)
    start_values, tried = best_values, 1
    rounds, has_risen = 0, True
    while has_risen:
        rounds, has_risen = rounds + 1, False
        candidates = list(_neighbors(best))
        with begin_round(rounds, len(candidates)) as advance:
            for candidate in candidates:
                values = await values_of(candidate, training)
                tried += 1
                advance(1)
                if mean(values) > mean(best_values):
                    best, best_values, has_risen = candidate, values, True
    return TuningResult(
        dataset=judged.name,
        changed={name: best.value(name) for name in SEARCH_SPACE if best.value(name) != start.value(name)},
        tried=tried,
        training=compare("tuned", "unchanged", best_values, start_values),
        held_out=compare(
            "tuned",
            "unchanged",
            await values_of(best, held_out),
            await values_of(start, held_out),
        ),
    )


def as_settings_file(changed: Mapping[str, object]) -> str:
    """Settings as a file that ``TRIVIUM_SETTINGS_FILE`` may name."""
    return "".join(f"{PREFIX}{name.upper()}={written(value)}\n" for name, value in sorted(changed.items()))


def _neighbors(settings: Settings) -> Iterator[Settings]:
    """The settings with each setting changed to each other value of the space."""
    for name, values in SEARCH_SPACE.items():
        if name == "centrality_weight" and "centrality" not in default_profile(settings).boosts:
            continue
        for value in values:
            changed = {**settings.ranking.weights, **value} if name == "weights" and isinstance(value, dict) else value
            candidate = settings.changed(**{name: changed})
            if candidate != settings:
                yield candidate


async def measured(
    search: SearchService, principal: Principal, judged: JudgedQueries, queries: Iterable[str]
) -> dict[str, float]:
    """The main measure of some queries."""
    run = {}
    for id_ in queries:
        response = await search.search(make_request(judged.queries[id_], {}), principal, f"tune:{id_}")
        hits = ranked(require_complete(response, f"query {id_!r}").hits)
        run[id_] = descending_scores(judged_ids(hits, judged.judgments[id_]))
    return measure_run({id_: judged.judgments[id_] for id_ in run}, run)[MAIN_MEASURE]
