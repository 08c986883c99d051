"""Boosts through the engine: which are on, what they are made of, and what the answer says of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import exp
from pathlib import Path

import pytest

from adapters.embedded import Library
from orchestrator.settings import Settings
from tests.conftest import entry
from tests.orchestrator.engines import NOW, ask, engine, opened

pytestmark = pytest.mark.anyio
TODAY = datetime.fromtimestamp(NOW, UTC).replace(hour=0)


@pytest.fixture
async def library(tmp_path: Path) -> Library:
    made = opened(tmp_path)
    text = "Alpha Centauri"
    await made.write(
        [
            entry("plain", text, seed=1),
            entry("rated", text, seed=1, importance=6),
            entry("old", text, seed=1, created_at=TODAY - timedelta(days=30)),
            entry("new", text, seed=1, created_at=TODAY + timedelta(hours=11), importance=0),
        ],
        (),
    )
    return made


async def test_importance_and_recency_weigh_in_unless_a_request_says_no(library: Library) -> None:
    """All four are alike to the sources: what tells them apart is 1 + 6/20, and 0.7 + 0.3 * exp(-0.023 * 30)."""
    answer = await ask(engine(library), mode="vector")
    by_id = {hit.id: hit for hit in answer.hits}
    assert by_id["rated"].boosts == {"importance": 1 + 6 / 20, "recency": 1.0}
    assert by_id["old"].boosts == {"importance": 1.0, "recency": 0.7 + 0.3 * exp(-0.023 * 30)}
    assert by_id["new"].boosts == {"importance": 1.0, "recency": 1.0}
    for hit in answer.hits:
        assert hit.score == pytest.approx(hit.fusion_score * hit.boosts["importance"] * hit.boosts["recency"])
    assert [hit.id for hit in answer.hits] == ["rated", "new", "plain", "old"]
    off = await ask(engine(library), mode="vector", boosts={"importance": False, "recency": False})
    assert [hit.boosts for hit in off.hits] == [{}] * 4
    assert [hit.score for hit in off.hits] == [hit.fusion_score for hit in off.hits]


async def test_an_age_is_the_same_all_day(library: Library) -> None:
    made = engine(library)
    noon = (await ask(made, mode="vector")).hits
    made.now = lambda: TODAY.timestamp() + 86_399
    assert (await ask(made, mode="vector")).hits == noon
    made.now = lambda: TODAY.timestamp() + 86_400
    old = next(hit for hit in (await ask(made, mode="vector")).hits if hit.id == "old")
    assert old.boosts["recency"] == 0.7 + 0.3 * exp(-0.023 * 31)


async def test_a_relationship_is_how_near_the_walk_came(library: Library) -> None:
    await library.write([entry("far", "Only Centauri Alpha", seed=2)], ())
    answer = await ask(engine(library), mode="hybrid", boosts={"relationship": True}, explain=True)
    assert answer.explain
    assert answer.explain.boosts == ("importance", "recency", "relationship")
    walk = {hit.id: hit.score for hit in answer.explain.rankings["graph"]}
    for hit in answer.hits:
        expected = 1 + 0.1 * walk.get(hit.id, 0.0) / max(walk.values())
        assert hit.boosts["relationship"] == pytest.approx(expected)
    without = await ask(engine(library), mode="vector", boosts={"relationship": True})
    assert {hit.boosts["relationship"] for hit in without.hits} == {1.0}


async def test_what_is_on_is_a_setting(library: Library) -> None:
    answer = await ask(engine(library, settings=Settings(source_timeout_ms=5_000, boosts="")), mode="vector")
    assert [hit.boosts for hit in answer.hits] == [{}] * 4
    other = engine(library, settings=Settings(source_timeout_ms=5_000, boosts="recency"))
    assert set((await ask(other, mode="vector")).hits[0].boosts) == {"recency"}
