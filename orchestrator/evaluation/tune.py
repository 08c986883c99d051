"""Settings that suit a data set: chosen on one half of its queries, judged on the other.

Each setting is tried at each value of a short list, all else as it is; the best of these is kept, and so on from there,
as long as the mean over the training half rises (steepest ascent). What comes out is a gain only if the paired test on
the other half says so: with enough settings something always wins on the queries it was chosen on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from orchestrator.evaluation import measures
from orchestrator.evaluation.dataset import Dataset
from orchestrator.evaluation.evaluate import places
from orchestrator.evaluation.measures import MAIN, Difference
from orchestrator.evaluation.runner import whole
from orchestrator.evaluation.runs import request
from orchestrator.settings import Settings
from orchestrator.wiring import Service

CERTAIN = 0.05
"""The largest p that supports a gain."""

_LEAST = 20
"""Judged queries: with fewer, neither half could tell anything."""

_WEIGHTS = (0.25, 0.5, 1.0, 2.0, 4.0)
LADDERS: Mapping[str, tuple[object, ...]] = {
    "fusion": (
        *(f"joint_walk(base={base}, slope={slope})" for base in (1, 3, 6) for slope in (4, 8, 12, 16, 24)),
        *(f"rrf(k={k})" for k in (10, 30, 60, 100)),
    ),
    "weight_vector": _WEIGHTS,
    "weight_graph": _WEIGHTS,
    "weight_keyword": _WEIGHTS,
    "boosts": (("importance", "recency"), ("centrality", "importance", "recency")),
    "centrality_weight": (0.02, 0.05, 0.1, 0.2),
    "identifier_weight": (1.0, 2.0, 4.0),
}
"""By setting, the values that are tried."""


class TooFew(ValueError):
    """There are too few judged queries to tune on; the message says how many."""


class Tuned(Struct, frozen=True):
    """What tuning found: the settings changed, what they gain where they were chosen and where they were not."""

    dataset: str
    changed: dict[str, object]
    tried: int
    training: Difference
    held_out: Difference

    @property
    def supported(self) -> bool:
        """Whether the held-out half supports that it is a gain at all."""
        return bool(self.changed) and self.held_out.difference > 0 and self.held_out.p < CERTAIN


def halves(queries: Iterable[str]) -> tuple[list[str], list[str]]:
    """Two halves of some ids, the same ones every time, whatever their order."""
    shuffled = sorted(queries, key=lambda id_: hashlib.sha256(id_.encode()).digest())
    return sorted(shuffled[::2]), sorted(shuffled[1::2])


async def tune(service: Service, dataset: Dataset, advance: Callable[[int], None]) -> Tuned:
    """Search; ``advance`` is told of every candidate that was tried.

    :raises TooFew: if the data set has fewer than 20 judged queries.
    """
    if len(dataset.queries) < _LEAST:
        raise TooFew(f"{dataset.name} has {len(dataset.queries)} judged queries, tuning takes {_LEAST} at least")
    training, held_out = halves(dataset.queries)
    start = service.settings
    best, best_values = start, await _values(service, start, dataset, training)
    first_values, tried = best_values, 1
    risen = True
    while risen:
        risen = False
        for candidate in _neighbours(best):
            values = await _values(service, candidate, dataset, training)
            tried += 1
            advance(1)
            if measures.mean(values) > measures.mean(best_values):
                best, best_values, risen = candidate, values, True
    return Tuned(
        dataset=dataset.name,
        changed={name: getattr(best, name) for name in LADDERS if getattr(best, name) != getattr(start, name)},
        tried=tried,
        training=measures.compare("tuned", "as it was", best_values, first_values),
        held_out=measures.compare(
            "tuned",
            "as it was",
            await _values(service, best, dataset, held_out),
            await _values(service, start, dataset, held_out),
        ),
    )


def as_environment(changed: Mapping[str, object]) -> str:
    """Settings as a file that ``TRIVIUM_SETTINGS_FILE`` may name."""
    return "".join(
        f"TRIVIUM_{name.upper()}={','.join(value) if isinstance(value, tuple) else value}\n"
        for name, value in sorted(changed.items())
    )


def _neighbours(settings: Settings) -> Iterator[Settings]:
    """Each setting moved to each other value of its ladder."""
    for name, values in LADDERS.items():
        if name == "centrality_weight" and "centrality" not in settings.boosts:
            continue
        for value in values:
            # Through the checks, so that a strategy is written as it is always written.
            moved = Settings.model_validate({**settings.model_dump(), name: value})
            if moved != settings:
                yield moved


async def _values(service: Service, settings: Settings, dataset: Dataset, queries: Iterable[str]) -> dict[str, float]:
    """The main measure of some queries under some settings."""
    engine = service.engine.under(settings)
    run = {}
    for id_ in queries:
        answer = await engine.search(request(dataset.queries[id_], {}), service.caller, f"tune:{id_}")
        run[id_] = places([hit.id for hit in whole(answer, f"query {id_!r}").hits])
    judged = {id_: dataset.judgments[id_] for id_ in run}
    return measures.judge(judged, run)[MAIN]
