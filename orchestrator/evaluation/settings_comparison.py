"""Compares two settings: searches each judged query with both, and tests the difference with a paired test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from msgspec import Struct

from orchestrator.evaluation.comparison import SIGNIFICANCE, Difference, compare
from orchestrator.evaluation.judged_runs import descending_scores, judged_ids
from orchestrator.evaluation.judgments import JudgedQueries
from orchestrator.evaluation.measures import MAIN_MEASURE, measure_run
from orchestrator.evaluation.runs import make_request
from orchestrator.evaluation.searched_index import ranked, require_complete
from orchestrator.evaluation.workspace import WITHOUT_EFFECT, OpenService
from orchestrator.service.service import Service
from orchestrator.settings.backends import ServerIndexSettings
from orchestrator.settings.groups import Settings

_LIMIT = 10
"""Hits of a request, as users send it."""


class NotComparable(ValueError):
    """The two settings cannot be compared; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings, and the name that they have in the outcome."""

    name: str
    settings: Settings


class SettingsComparison(Struct, frozen=True):
    """The second settings against the first.

    :param winner: the name of the better settings; ``None`` if the difference is not significant.
    :param median_ms: median time of a search, by name; the searches alternate, so both have the same load.
    """

    dataset: str
    documents: int
    queries: int
    quality: Difference
    winner: str | None
    median_ms: dict[str, float]


def require_comparable(first: Variant, second: Variant) -> None:
    """Check what can be known before anything is searched.

    :raises NotComparable: if the settings have the same name, differ in what has no effect here, or need different
        measurements of one index.
    """
    if first.name == second.name:
        raise NotComparable(f"both settings are {first.name}: name two files")
    for name in sorted(WITHOUT_EFFECT | ServerIndexSettings.model_fields.keys()):
        if first.settings.value(name) != second.settings.value(name):
            raise NotComparable(f"TRIVIUM_{name.upper()} differs, and a comparison cannot show its effect")
    centralities = [each.settings.ranking.centrality for each in (first, second)]
    same_folder = first.settings.storage.data_dir == second.settings.storage.data_dir
    if same_folder and centralities[0] != centralities[1]:
        raise NotComparable(
            f"TRIVIUM_CENTRALITY is {centralities[0]} and {centralities[1]}: an index has one centrality, "
            "set a different TRIVIUM_DATA_DIR in each file"
        )


async def compare_settings(
    open_service: OpenService,
    first: Variant,
    second: Variant,
    judged: JudgedQueries,
    documents: int,
    advance: Callable[[int], None],
) -> SettingsComparison:
    """Search every query with both settings, in alternating order; nothing is cached.

    :param documents: number of documents in the index.
    :param advance: called with the number of searches since the last call.
    :raises IncompleteRun: if a source failed.
    """
    runs: dict[str, dict[str, list[tuple[str, float]]]] = {first.name: {}, second.name: {}}
    times_ms: dict[str, list[float]] = {first.name: [], second.name: []}

    async def search(name: str, service: Service, id_: str, text: str) -> None:
        began = perf_counter()
        response = await service.search.search(
            make_request(text, {"limit": _LIMIT}), service.anonymous, f"compare:{id_}"
        )
        times_ms[name].append((perf_counter() - began) * 1_000)
        hits = ranked(require_complete(response, f"{name}, query {id_!r}").hits)
        runs[name][id_] = descending_scores(judged_ids(hits, judged.judgments[id_]))
        advance(1)

    async with open_service(first.settings) as one, open_service(second.settings) as other:
        pair = [(first.name, one), (second.name, other)]
        for id_, text in judged.queries.items():
            for name, service in pair:
                await search(name, service, id_, text)
            pair.reverse()
    values = {name: measure_run(judged.judgments, run)[MAIN_MEASURE] for name, run in runs.items()}
    quality = compare(second.name, first.name, values[second.name], values[first.name])
    winner = None
    if quality.p < SIGNIFICANCE:
        winner = second.name if quality.difference > 0 else first.name
    return SettingsComparison(
        dataset=judged.name,
        documents=documents,
        queries=len(judged.queries),
        quality=quality,
        winner=winner,
        median_ms={name: median(times) for name, times in times_ms.items()},
    )
