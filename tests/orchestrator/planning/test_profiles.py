"""The named ways of ranking, and what requests and settings change in them."""

from __future__ import annotations

import pytest

from fusion.joint_walk import JointWalk
from orchestrator.planning.defaults import timeout_ms
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.plan import BoostPlan
from orchestrator.schema.search import BoostStrength, SearchRequest
from orchestrator.settings import Settings
from tests.orchestrator.planning.plans import planned, ranking


def test_the_profile_rrf_is_reciprocal_rank_fusion_as_published() -> None:
    plan = planned(profile="rrf", mode="hybrid")
    assert (plan.profile, plan.ranking.strategy) == ("rrf", "rrf(k=60)")
    assert plan.ranking.weights == {"vector": 1.0, "graph": 1.0, "keyword": 1.0}
    assert plan.ranking.boosts == (BoostPlan("centrality", 1.0),)
    assert {call.stage for call in plan.ranking.calls} == {1}


def test_nothing_changes_the_weights_of_the_profile_rrf_but_settings_and_requests() -> None:
    """Neither the trust in the graph nor an identifier in a query of mode ``auto``."""
    query = "the class os.path"
    assert ranking(profile="rrf", query=query, trust=0.25).weights == {"vector": 1.0, "graph": 1.0, "keyword": 1.0}
    assert ranking(query=query, trust=0.25).weights == {"vector": 1.0, "graph": 0.25, "keyword": 2.0}
    assert ranking(Settings.of(weights="graph=0.5"), profile="rrf", trust=0.25).weights["graph"] == 0.5


def test_the_profile_weighted_rrf_has_measured_weights_and_the_graph_as_far_as_it_knows_the_query() -> None:
    plan = planned(profile="weighted_rrf", mode="hybrid")
    assert (plan.profile, plan.ranking.strategy) == ("weighted_rrf", "rrf(k=60, slope=3)")
    assert plan.ranking.weights == {"vector": 1.0, "graph": 1.0, "keyword": 2.5}
    assert plan.ranking.boosts == ()
    assert {call.stage for call in plan.ranking.calls} == {1}


def test_with_weights_of_its_own_a_request_gets_no_measured_weight() -> None:
    weighted = planned(profile="weighted_rrf", mode="hybrid", weights={"graph": 0.5}).ranking
    assert weighted.strategy == "rrf(k=60)"
    assert weighted.weights == {"vector": 1.0, "graph": 0.5, "keyword": 1.0}


def test_the_profile_joint_searches_the_graph_after_the_texts_without_boosts() -> None:
    plan = planned(profile="joint", mode="hybrid")
    assert (plan.profile, plan.ranking.strategy) == ("joint", str(JointWalk()))
    assert plan.ranking.boosts == ()
    assert [(call.source, call.stage) for call in plan.ranking.calls] == [("vector", 1), ("graph", 2), ("keyword", 1)]
    assert planned(mode="hybrid").ranking == plan.ranking


def test_the_profile_fast_searches_no_graph_and_half_as_deep() -> None:
    plan, usual = planned(profile="fast"), planned()
    assert plan.profile == "fast"
    assert plan.ranking.sources == ("vector", "keyword")
    assert {call.stage for call in plan.ranking.calls} == {1}
    assert "graph has weight 0" in plan.reason
    assert (plan.ranking.depth, usual.ranking.depth) == (100, 200)
    assert ranking(Settings.of(weights="graph=2"), profile="fast").sources == ("vector", "keyword")
    assert ranking(Settings.of(profile="fast")) == plan.ranking
    assert ranking(Settings.of(candidates_per_source=60, max_limit=50), profile="fast").depth == 50


def test_what_a_request_weights_or_names_is_searched_in_the_profile_fast_too() -> None:
    assert ranking(profile="fast", weights={"graph": 0.5}).sources == ("vector", "graph", "keyword")
    assert ranking(profile="fast", weights={"keyword": 2.0}).sources == ("vector", "keyword")
    assert ranking(profile="fast", mode="graph").sources == ("graph",)


@pytest.mark.parametrize("profile", ["joint", "fast", "quality", "rrf"])
@pytest.mark.parametrize("encoder", ["model", "static"])
def test_fast_and_quality_choose_the_encoder_where_there_are_two(profile: str, encoder: str) -> None:
    chosen = ranking(Settings.of(query_encoder=encoder), profile=profile).encoder
    assert chosen == ("model" if profile == "quality" else encoder)
    assert ranking(Settings.of(query_encoder=encoder, profile=profile)).encoder == chosen


def test_the_profile_quality_reranks_if_there_is_a_reranker_and_the_request_does_not_say() -> None:
    assert ranking(profile="quality") == ranking(profile="joint")
    with_one = Settings.of(reranker="rerank+http://127.0.0.1:9/v1", rerank_timeout_ms=500, request_timeout_ms=100)
    for settings, fields, expected in (
        (Settings(), {"profile": "quality"}, False),
        (with_one, {"profile": "quality"}, True),
        (with_one, {"profile": "quality", "rerank": False}, False),
        (with_one, {}, False),
        (with_one, {"profile": "joint"}, False),
        (with_one.changed(profile="quality"), {}, True),
        (with_one.changed(profile="quality"), {"profile": "fast"}, False),
        (with_one.changed(rerank=True), {"profile": "fast"}, True),
    ):
        assert (planned(settings, **fields).page.rerank is not None) == expected
        request = SearchRequest(query="words", **fields)  # type: ignore[arg-type]
        assert timeout_ms(request, settings) == settings.requests.timeout_ms + 500 * expected


def test_settings_change_a_profile_and_a_request_that_names_one_gets_it_as_it_is() -> None:
    settings = Settings.of(profile="rrf", fusion="rrf(k=10)", boosts=("recency",), centrality_weight=0.5)
    assert ranking(settings).strategy == "rrf(k=10)"
    assert [boost.name for boost in ranking(settings).boosts] == ["recency"]
    assert ranking(settings, boosts={"centrality": True}).boosts[0].weight == 0.5
    assert ranking(settings, profile="rrf") == ranking(profile="rrf")
    assert ranking(settings, profile="joint", fusion="dbsf").strategy == "dbsf()"


def test_a_boost_has_the_strength_of_the_request_or_of_the_settings() -> None:
    settings = Settings.of(boosts="recency=0.3, importance", recency_half_life_days=365)
    assert ranking(settings, mode="hybrid").boosts == (
        BoostPlan("importance"),
        BoostPlan("recency", 0.3, half_life_days=365.0),
    )
    strengths = {"importance": BoostStrength(0.5), "recency": BoostStrength(1.0, 7.0), "centrality": BoostStrength(0.5)}
    assert ranking(settings, mode="hybrid", boosts=strengths).boosts == (
        BoostPlan("centrality", 0.05),
        BoostPlan("importance", 0.5),
        BoostPlan("recency", 1.0, half_life_days=7.0),
    )
    off = {"importance": False, "recency": BoostStrength(0.0)}
    assert ranking(settings, mode="hybrid", boosts=off).boosts == ()
    with pytest.raises(BadRequest, match="half_life_days of 'importance', allowed is that of recency"):
        ranking(boosts={"importance": BoostStrength(1.0, 7.0)})
