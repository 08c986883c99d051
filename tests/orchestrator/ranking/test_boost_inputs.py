"""Boosts: which are on, which factors they have, and how a response shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import exp
from pathlib import Path

import pytest

from adapters.engine import EmbeddedIndex
from orchestrator.schema.search import BoostStrength
from tests.conftest import vector_record
from tests.orchestrator.services import NOW, SETTINGS, FixedGraph, empty_index, search, search_service

pytestmark = pytest.mark.anyio
TODAY = datetime.fromtimestamp(NOW, UTC).replace(hour=0)

ONLY_VECTOR = {"graph": 0.0, "keyword": 0.0}
BOTH = {"importance": True, "recency": True}


@pytest.fixture
async def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path)
    text = "Alpha Centauri"
    await index.write(
        [
            vector_record("plain", text, seed=1),
            vector_record("rated", text, seed=1, importance=6),
            vector_record("old", text, seed=1, created_at=TODAY - timedelta(days=30)),
            vector_record("new", text, seed=1, created_at=TODAY + timedelta(hours=11), importance=0),
        ],
        (),
    )
    return index


async def test_importance_and_recency_count_where_a_request_says_so(index: EmbeddedIndex) -> None:
    """All four have equal vectors and no graph; the factors are 1 + 6/20, and 0.7 + 0.3 * exp(-0.023 * 30).

    A document without a date or an importance counts like the median of the two that have one.
    """
    service = search_service(index)
    off = await search(service, mode="hybrid", weights=ONLY_VECTOR)
    assert [hit.boosts for hit in off.hits] == [{}] * 4
    assert [hit.score for hit in off.hits] == [hit.fusion_score for hit in off.hits]
    response = await search(service, mode="hybrid", weights=ONLY_VECTOR, boosts=BOTH)
    by_id = {hit.id: hit for hit in response.hits}
    aged = 0.7 + 0.3 * exp(-0.023 * 30)
    assert by_id["rated"].boosts == {"importance": 1 + 6 / 20, "recency": (1 + aged) / 2}
    assert by_id["old"].boosts == {"importance": 1.15, "recency": aged}
    assert by_id["new"].boosts == {"importance": 1.0, "recency": 1.0}
    assert by_id["plain"].boosts == {"importance": 1.15, "recency": (1 + aged) / 2}
    for hit in response.hits:
        assert hit.score == pytest.approx(hit.fusion_score * hit.boosts["importance"] * hit.boosts["recency"])
    half = {"importance": BoostStrength(0.5), "recency": BoostStrength(0.5, half_life_days=30)}
    weaker = {
        hit.id: hit.boosts for hit in (await search(service, mode="hybrid", weights=ONLY_VECTOR, boosts=half)).hits
    }
    assert weaker["rated"]["importance"] == 1 + 3 / 20
    assert weaker["old"]["recency"] == pytest.approx(0.85 + 0.15 / 2)


async def test_dates_and_importances_change_nothing_by_default(index: EmbeddedIndex) -> None:
    service = search_service(index)
    for fields in ({}, {"profile": "rrf"}, {"profile": "weighted_rrf"}, {"mode": "vector"}):
        for hit in (await search(service, **fields)).hits:
            assert not {"importance", "recency"} & hit.boosts.keys()


async def test_an_age_is_the_same_all_day(index: EmbeddedIndex) -> None:
    service = search_service(index)
    noon = (await search(service, mode="hybrid", weights=ONLY_VECTOR, boosts=BOTH)).hits
    service.now = lambda: TODAY.timestamp() + 86_399
    assert (await search(service, mode="hybrid", weights=ONLY_VECTOR, boosts=BOTH)).hits == noon
    service.now = lambda: TODAY.timestamp() + 86_400
    later = (await search(service, mode="hybrid", weights=ONLY_VECTOR, boosts=BOTH)).hits
    old = next(hit for hit in later if hit.id == "old")
    assert old.boosts["recency"] == 0.7 + 0.3 * exp(-0.023 * 31)


async def test_a_relationship_is_the_score_of_the_walk_divided_by_its_best(index: EmbeddedIndex) -> None:
    await index.write([vector_record("far", "Only Centauri Alpha", seed=2)], ())
    service = search_service(index)
    response = await search(service, mode="hybrid", boosts={"relationship": True}, explain=True)
    assert response.explain
    assert response.explain.boosts == ("relationship",)
    walk = {hit.id: hit.score for hit in response.explain.rankings["graph"]}
    for hit in response.hits:
        expected = 1 + 0.1 * walk.get(hit.id, 0.0) / max(walk.values())
        assert hit.boosts["relationship"] == pytest.approx(expected)
    without = await search(service, mode="vector", boosts={"relationship": True})
    assert {hit.boosts["relationship"] for hit in without.hits} == {1.0}


async def test_the_settings_name_the_boosts_that_are_on(index: EmbeddedIndex) -> None:
    response = await search(
        search_service(index, settings=SETTINGS.changed(boosts="")), mode="hybrid", weights=ONLY_VECTOR
    )
    assert [hit.boosts for hit in response.hits] == [{}] * 4
    other = search_service(index, settings=SETTINGS.changed(boosts="recency"))
    assert set((await search(other, mode="hybrid", weights=ONLY_VECTOR)).hits[0].boosts) == {"recency"}


async def test_the_profile_rrf_gives_the_scores_of_the_recipe_by_hand(index: EmbeddedIndex) -> None:
    """Each source has weight 1: the sum of ``1 / (60 + rank)``, of the best possible sum, times 1 + centrality."""
    centrality = {"plain": 0.75, "rated": 0.0, "old": 0.5}
    service = search_service(index, centralities=FixedGraph(**centrality))
    response = await search(service, "Alpha Centauri", mode="hybrid", profile="rrf")
    scores = {}
    for hit in response.hits:
        ranks = [part.rank for part in hit.sources.values() if part]
        scores[hit.id] = sum(1 / (60 + rank) for rank in ranks) / (3 / 61) * (1 + centrality.get(hit.id, 0.0))
        assert hit.score == pytest.approx(scores[hit.id])
    assert [hit.id for hit in response.hits] == sorted(scores, key=scores.__getitem__, reverse=True)
    assert any(len([part for part in hit.sources.values() if part]) == 3 for hit in response.hits)
