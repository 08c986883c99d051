"""Learned fusion: trees are fitted to one half of the judged queries and tested on the other.

LambdaMART (Burges: "From RankNet to LambdaRank to LambdaMART: An Overview", 2010) by LightGBM: at most 50 trees of at
most 8 leaves, which start from the order of the fusion strategy in use. A higher score or a better rank in a source
never lowers a document, whatever chance says in few queries. The outcome is the same on each run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from adapters.model.errors import Unavailable
from adapters.ports.optional_packages import extra
from fusion.columns import Candidates
from fusion.doc_ids import id_and_collection
from fusion.learned import (
    BASE_FACTOR,
    COVERAGE,
    UNIT,
    Learned,
    encode,
    feature_columns,
    feature_names,
    file_of,
    scores_by_row,
)
from fusion.rank_fields import Floats
from fusion.source import Sources
from fusion.strategy import Strategy
from fusion.sums import Fused
from fusion.trees import MAX_LEAVES, MAX_TREES, Tree
from orchestrator.evaluation.comparison import Difference, compare
from orchestrator.evaluation.judgments import JudgedQueries
from orchestrator.evaluation.tuning import halves, measured, objection_to
from orchestrator.planning.defaults import default_profile
from orchestrator.planning.strategies import Correction, Strategies
from orchestrator.service.search import SearchService
from orchestrator.service.service import Service

_NAME = "learned(in memory)"
_PARAMETERS = {
    "objective": "lambdarank",
    "num_leaves": MAX_LEAVES,
    "learning_rate": 0.1,
    "min_data_in_leaf": 50,
    "lambdarank_truncation_level": 20,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "seed": 0,
    "verbose": -1,
}


class AlreadyLearned(ValueError):
    """The strategy in use was learned itself."""


class LearningResult(Struct, frozen=True):
    """What was learned, and its gain on the queries that it was learned from and on the others.

    :param base: the strategy that the trees correct.
    :param trees: number of trees.
    """

    dataset: str
    base: str
    trees: int
    training: Difference
    held_out: Difference

    @property
    def objection(self) -> str:
        """Why it is not to be used; empty if the gain on the held-out half is significant."""
        if not self.trees:
            return f"nothing was learned from the training half: {self.base} stays as it is"
        return objection_to(self.held_out)


@dataclass(slots=True)
class _Recorder:
    """A strategy that keeps what it was called with, and what it returned."""

    base: Strategy
    calls: list[tuple[Candidates, Fused]] = field(default_factory=list, init=False)

    def __str__(self) -> str:
        return _NAME

    def __call__(self, candidates: Candidates, weights: Mapping[str, float], sources: Sources) -> Fused:
        """As the other strategy."""
        fused = self.base(candidates, weights, sources)
        self.calls.append((candidates, fused))
        return fused


@dataclass(frozen=True, slots=True)
class TrainingQuery:
    """The candidates of a judged query.

    :param features: see :func:`fusion.learned.feature_columns`.
    :param fused: the fusion score of each.
    :param grades: the judgment of each; 0 if it has none.
    """

    features: Floats
    fused: Floats
    grades: npt.NDArray[np.int64]


async def learn(
    service: Service, judged: JudgedQueries, advance: Callable[[int], None]
) -> tuple[LearningResult, bytes]:
    """Learn, and test what was learned. Returns also the file for ``TRIVIUM_FUSION``.

    :param advance: called with the number of queries that were searched; each is searched twice.
    :raises TooFewQueries: if there are fewer than 20 judged queries.
    :raises AlreadyLearned: if the strategy in use was learned.
    :raises Unavailable: as :func:`load_lightgbm`.
    """
    training, held_out = halves(judged)
    search, base = service.search, default_profile(service.settings).fusion
    require_named(base)
    strategy, _ = search.retrieval.strategies.find(base)
    names = feature_names(source.name for source in search.sources)
    recorder = _Recorder(strategy)
    recorded = _with_strategy(search, recorder)

    async def values_of(variant: SearchService, ids: list[str]) -> dict[str, float]:
        values = await measured(variant, service.anonymous, judged, ids)
        advance(len(ids))
        return values

    queries = []
    before: dict[str, float] = {}
    for id_ in training:
        recorder.calls.clear()
        before |= await values_of(recorded, [id_])
        if recorder.calls:
            queries.append(_training_query(*recorder.calls[-1], names, judged.judgments[id_]))
    trees = fitted(queries, names)
    file = encode(str(strategy), names, trees) if trees else b""
    learned = _with_strategy(search, Learned.decode(file)) if trees else search

    async def gain(ids: list[str], unchanged: dict[str, float]) -> Difference:
        return compare("learned", "unchanged", await values_of(learned, ids), unchanged)

    on_training = await gain(training, before)
    on_held_out = await gain(held_out, await values_of(search, held_out))
    return LearningResult(judged.name, str(strategy), len(trees), on_training, on_held_out), file


def require_named(strategy: str) -> None:
    """Check that a strategy can be corrected by trees.

    :raises AlreadyLearned: if it was learned.
    """
    if file_of(strategy):
        raise AlreadyLearned(f"TRIVIUM_FUSION is {strategy}: trees correct another strategy, so name or leave out one")


def load_lightgbm() -> Any:
    """The package LightGBM.

    :raises Unavailable: if it is not installed or cannot be loaded.
    """
    with extra("learn"):
        try:
            import lightgbm  # noqa: PLC0415, takes half a second
        except OSError as error:  # a library of the system is missing, such as that of OpenMP
            raise Unavailable(f"LightGBM cannot be loaded: {error}") from error
    return lightgbm


def fitted(queries: Iterable[TrainingQuery], names: list[str]) -> list[Tree]:
    """The trees; empty if no query has candidates with different grades.

    :param names: of the features.
    :raises Unavailable: as :func:`load_lightgbm`.
    """
    useful = [each for each in queries if len(set(each.grades.tolist())) > 1]
    if not useful:
        return []
    lightgbm = load_lightgbm()
    grades = np.concatenate([each.grades for each in useful])
    kinds, ranked = np.unique(grades, return_inverse=True)
    data = lightgbm.Dataset(
        np.concatenate([each.features.T for each in useful]),
        ranked,
        group=[len(each.grades) for each in useful],
        init_score=BASE_FACTOR * np.concatenate([each.fused for each in useful]),
        feature_name=[f"f{number}" for number in range(len(names))],
    )
    parameters = {
        **_PARAMETERS,
        "label_gain": kinds.tolist(),
        "monotone_constraints": [int(name != COVERAGE) for name in names],
    }
    booster = lightgbm.train(parameters, data, MAX_TREES)
    described = booster.dump_model()["tree_info"]
    return [tree for each in described if (tree := _tree(each["tree_structure"])).features]


def _with_strategy(search: SearchService, strategy: Correction) -> SearchService:
    """The same service with another strategy for requests that name none."""
    retrieval = search.retrieval.with_strategies(Strategies.with_learned(_NAME, strategy))
    return replace(search, settings=search.settings.changed(fusion=_NAME), retrieval=retrieval)


def _training_query(
    candidates: Candidates, fused: Fused, names: list[str], judgments: Mapping[str, int]
) -> TrainingQuery:
    ids = candidates.ids(np.arange(len(candidates)))
    parents: list[str | None] = [None] * len(ids)
    if fields := candidates.fields:
        parents = [None if parent < 0 else fields.parents[parent] for parent in fields.parent.tolist()]
    grades = [_grade(judgments, each, parent) for each, parent in zip(ids, parents, strict=True)]
    scores = scores_by_row(candidates, fused)
    return TrainingQuery(feature_columns(candidates, scores, names), scores, np.array(grades, np.int64))


def _grade(judgments: Mapping[str, int], *identities: str | None) -> int:
    """The grade of a chunk, or of the document that it belongs to."""
    named = (id_and_collection(each)[0] for each in identities if each is not None)
    return next((max(judgments[each], 0) for each in named if each in judgments), 0)


def _tree(structure: Mapping[str, Any]) -> Tree:
    """A tree of LightGBM's description of a model."""
    nodes = list(_described(structure))
    inner = sorted((each for each in nodes if "split_index" in each), key=lambda each: each["split_index"])
    leaves = sorted((each for each in nodes if "split_index" not in each), key=lambda each: each.get("leaf_index", 0))
    return Tree(
        [each["split_feature"] for each in inner],
        [each["threshold"] for each in inner],
        [_number(each["left_child"]) for each in inner],
        [_number(each["right_child"]) for each in inner],
        [round(each["leaf_value"] / UNIT) for each in leaves],
    )


def _described(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in ("left_child", "right_child"):
        if child in node:
            yield from _described(node[child])


def _number(node: Mapping[str, Any]) -> int:
    return int(node["split_index"]) if "split_index" in node else ~int(node["leaf_index"])
