"""Laws of the order of candidates, for any rankings, strategy, boosts and collapsing."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import Scope
from adapters.model.protection import HIGHEST_CLEARANCE, Sensitivity
from adapters.model.sources import SOURCES
from adapters.ports import Snapshot
from fusion.columns import Candidates, Ranking
from fusion.rank_fields import Floats
from fusion.strategy import STRATEGIES
from fusion.values import DocumentFields
from orchestrator.execution.budget import Deadline
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import FusedCandidates, Ranked
from orchestrator.planning.plan import DAY_S, RankingPlan
from orchestrator.ranking.boost_inputs import boost_columns
from orchestrator.ranking.rank import apply_boosts, apply_collapse, fuse
from orchestrator.telemetry.spans import StageTimings
from tests.conftest import SCOPE
from tests.orchestrator.services import NOW, plan_of

BY_NAME = {source.name: source for source in SOURCES}
IDS = tuple("abcdefgh")
SNAPSHOT = Snapshot(SCOPE, 1, ("v",), documents=None)  # type: ignore[arg-type]

document_fields = st.builds(
    DocumentFields,
    parent=st.none() | st.sampled_from(["a", "b", "p"]),
    chunk=st.none() | st.integers(0, 6),
    created_at=st.none() | st.floats(0, 2 * NOW),
    importance=st.none() | st.floats(0, 10),
)
corpora = st.fixed_dictionaries(dict.fromkeys(IDS, document_fields))


@st.composite
def rankings(draw: st.DrawFn) -> list[Ranking]:
    """One to three rankings over the same documents, with ties and scores that are not positive."""
    corpus = draw(corpora)
    names = draw(st.lists(st.sampled_from(list(BY_NAME)), min_size=1, max_size=3, unique=True))
    drawn = []
    for name in names:
        ids = draw(st.lists(st.sampled_from(IDS), max_size=len(IDS), unique=True))
        score = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 7.5])
        scores = sorted((draw(score) for _ in ids), reverse=True)
        drawn.append(Ranking.of_ids(name, ids, scores, draw(st.floats(0, 1)), corpus))
    return drawn


plans = st.builds(
    lambda fusion_, collapse, radius, min_score, boosts, weights: (
        plan_of(
            mode="hybrid",
            fusion=fusion_,
            collapse=collapse,
            neighbors=radius,
            min_score=min_score,
            boosts=dict.fromkeys(("centrality", "importance", "recency", "relationship"), False)
            | dict.fromkeys(boosts, True),
            weights=weights,
        ).ranking
    ),
    st.sampled_from(sorted(STRATEGIES)),
    st.sampled_from(["none", "parent", "window"]),
    st.integers(0, 3),
    st.sampled_from([0.0, 0.3]),
    st.sets(st.sampled_from(["centrality", "importance", "recency", "relationship"])),
    st.dictionaries(st.sampled_from(list(BY_NAME)), st.floats(0.1, 10), max_size=3),
)
centralities = st.dictionaries(st.sampled_from(IDS), st.floats(0, 1))


class GivenCentralities:
    def __init__(self, values: Mapping[str, float]) -> None:
        self._values = values

    async def centralities(
        self,
        scope: Scope,
        ids: Sequence[str],
        snapshot: Snapshot | None = None,
        clearance: Sensitivity = HIGHEST_CLEARANCE,
    ) -> Mapping[str, float]:
        return {id_: self._values[id_] for id_ in ids if id_ in self._values}


def factors_of(plan: RankingPlan, fused: FusedCandidates, values: Mapping[str, float]) -> dict[str, Floats | None]:
    context = SearchContext(Deadline.after(60.0), StageTimings())
    factors, failures = asyncio.run(boost_columns(plan, fused, BY_NAME, GivenCentralities(values), SNAPSHOT, context))
    assert failures == []
    return factors


def ranked_of(plan: RankingPlan, drawn: Sequence[Ranking], values: Mapping[str, float]) -> Ranked:
    fused = fuse(plan, Candidates.of(drawn), BY_NAME)
    factors = factors_of(plan, fused, values)
    return apply_collapse(plan, fused, apply_boosts(fused, factors, BY_NAME), factors)


def described(ranked: Ranked) -> list[Any]:
    """The whole result, by id."""
    candidates = ranked.fused.candidates
    order = candidates.ids(ranked.rows)
    pairs = np.array(list(ranked.collapsed_into.items()), np.int64).reshape(-1, 2)
    collapsed = sorted(zip(candidates.ids(pairs[:, 0]), candidates.ids(pairs[:, 1]), strict=True))
    factors = {
        name: None if column is None else column[ranked.rows].tolist() for name, column in ranked.factors.items()
    }
    return [order, ranked.score[ranked.rows].tolist(), factors, collapsed, ranked.fused.strategy]


@given(plans, rankings(), centralities, st.randoms(use_true_random=False))
def test_the_order_of_the_rankings_never_matters(
    plan: RankingPlan, drawn: list[Ranking], values: dict[str, float], random: Any
) -> None:
    shuffled = random.sample(drawn, len(drawn))
    assert described(ranked_of(plan, shuffled, values)) == described(ranked_of(plan, drawn, values))


@given(plans, rankings(), centralities)
def test_no_document_is_twice_in_the_result_and_none_is_lost(
    plan: RankingPlan, drawn: list[Ranking], values: dict[str, float]
) -> None:
    ranked = ranked_of(plan, drawn, values)
    candidates = ranked.fused.candidates
    found = {id_ for ranking in drawn for id_ in ranking.ids}
    results = candidates.ids(ranked.rows)
    collapsed = candidates.ids(np.array(list(ranked.collapsed_into), np.int64))
    below = candidates.ids(ranked.fused.below)
    assert sorted([*results, *collapsed, *below]) == sorted(found)


@given(plans, rankings(), centralities)
def test_scores_never_rise_and_are_the_fusion_score_times_the_factors(
    plan: RankingPlan, drawn: list[Ranking], values: dict[str, float]
) -> None:
    ranked = ranked_of(plan, drawn, values)
    fused = ranked.fused.fused
    fusion_score = dict(zip(fused.rows.tolist(), fused.score.tolist(), strict=True))
    scores = ranked.score[ranked.rows].tolist()
    assert scores == sorted(scores, reverse=True)
    for row, score in zip(ranked.rows.tolist(), scores, strict=True):
        factors = [float(column[row]) for column in ranked.factors.values() if column is not None]
        assert score == pytest.approx(fusion_score[row] * math.prod(factors))
        assert fusion_score[row] >= plan.min_score
        assert 0.0 <= fusion_score[row] <= 1.0


BOUNDS = {"importance": (1.0, 1.5), "recency": (0.7, 1.0), "centrality": (1.0, 1.1), "relationship": (1.0, 1.1)}
"""With the default weights: ``1 + 10/20``, ``0.7 + 0.3 * exp(-0.023 * age)``, ``1 + 0.1 * c`` and ``1 + 0.1 * w``."""


@given(plans, rankings(), centralities)
def test_every_factor_is_within_its_bounds(plan: RankingPlan, drawn: list[Ranking], values: dict[str, float]) -> None:
    factors = ranked_of(plan, drawn, values).factors
    assert set(factors) == {boost.name for boost in plan.boosts}
    for name, column in factors.items():
        low, high = BOUNDS[name]
        if column is not None:
            assert low - 1e-12 <= column.min(initial=low)
            assert column.max(initial=high) <= high + 1e-12


@given(plans, rankings(), centralities)
def test_boosts_turn_no_order_upside_down(plan: RankingPlan, drawn: list[Ranking], values: dict[str, float]) -> None:
    """No document overtakes one whose fusion score is more than 1.815 / 0.7 = 2.6 times its own."""
    fused = fuse(plan, Candidates.of(drawn), BY_NAME)
    boosted = apply_boosts(fused, factors_of(plan, fused, values), BY_NAME)
    fusion_score = np.zeros(len(fused.candidates))
    fusion_score[fused.fused.rows] = fused.fused.score
    max_ratio = math.prod(high for _, high in BOUNDS.values()) / 0.7
    assert max_ratio == pytest.approx(1.815 / 0.7)
    ordered = fusion_score[boosted.rows]
    for position, score in enumerate(ordered):
        assert (ordered[position + 1 :] <= score * max_ratio + 1e-12).all()


@given(plans, rankings())
def test_without_boosts_the_order_is_that_of_fusion(plan: RankingPlan, drawn: list[Ranking]) -> None:
    fused = fuse(plan, Candidates.of(drawn), BY_NAME)
    boosted = apply_boosts(fused, {}, BY_NAME)
    assert boosted.rows.tolist() == fused.fused.rows.tolist()
    assert boosted.score.tolist() == fused.fused.score.tolist()


@given(plans, rankings(), centralities)
def test_a_document_that_is_replaced_ranks_no_better_than_a_chunk_that_replaces_it_unless_it_is_its_parent(
    plan: RankingPlan, drawn: list[Ranking], values: dict[str, float]
) -> None:
    ranked = ranked_of(plan, drawn, values)
    fields = ranked.fused.candidates.fields
    results = set(ranked.rows.tolist())
    for row, into in ranked.collapsed_into.items():
        assert fields is not None
        assert row not in results
        assert fields.row(into).parent is not None
        if fields.row(row).parent is None:
            assert fields.row(into).parent == ranked.fused.candidates.ids(np.array([row]))[0]
        else:
            assert fields.row(into).parent == fields.row(row).parent
            assert ranked.score[row] <= ranked.score[into]


def test_a_strategy_with_a_defect_is_replaced_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __str__(self) -> str:
            return "broken()"

        def __call__(self, *_: object) -> object:
            raise ZeroDivisionError

    monkeypatch.setitem(STRATEGIES, "broken", Broken)  # type: ignore[arg-type]
    plan = plan_of(mode="hybrid", fusion="broken").ranking
    drawn = [Ranking.of_ids("vector", ["a", "b"], [1.0, 0.5]), Ranking.of_ids("keyword", ["c"], [1.0])]
    fused = fuse(plan, Candidates.of(drawn), BY_NAME)
    assert (fused.strategy, fused.warning) == ("concatenate()", "broken() failed, concatenate() was used")
    assert fused.candidates.ids(fused.fused.rows) == ["c", "a", "b"]


def test_ages_are_counted_from_the_beginning_of_the_day_of_the_plan() -> None:
    plan = plan_of(mode="hybrid", boosts={"recency": True}).ranking
    created_at = (plan.day - 30) * DAY_S
    ranking = Ranking.of_ids("vector", ["a"], [1.0], fields={"a": DocumentFields(created_at=created_at)})
    fused = fuse(plan, Candidates.of([ranking]), BY_NAME)
    column = factors_of(plan, fused, {})["recency"]
    assert column is not None
    assert column.tolist() == [0.7 + 0.3 * math.exp(-0.023 * 30)]
