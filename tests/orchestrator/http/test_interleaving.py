"""``TRIVIUM_INTERLEAVE``: responses with the hits of two profiles in turn, and what feedback says about these."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import anyio
import httpx
import msgspec
import pytest
from pydantic import ValidationError

from adapters.storage.feedback_store import FeedbackStore
from orchestrator.bootstrap.service import open_service
from orchestrator.evaluation.searched_index import IncompleteRun, require_complete
from orchestrator.execution.stage_results import AllSourcesFailed, Failed
from orchestrator.planning.interleaving import begins
from orchestrator.results.draft import Entry, team_draft
from orchestrator.schema.search import SearchRequest, SearchResponse
from orchestrator.settings import Settings
from orchestrator.settings.loading import SettingsError
from tests.conftest import SCOPE
from tests.orchestrator.evaluation.command import run
from tests.orchestrator.http.helpers import complete_response, hit_ids, ndjson, search, serving

pytestmark = pytest.mark.anyio

DOCUMENTS = [
    {
        "id": f"{topic}-{number}",
        "text": f"{text} {'dust ' * number}",
        "parent_id": f"{topic}s" if number % 3 == 0 else None,
        "chunk_index": number if number % 3 == 0 else None,
        "links": [{"target": f"{topic}-{number + 1}", "type": "next"}] if number < 8 else [],
    }
    for topic, text in (("Comet", "A Comet has a tail of"), ("Sail", "A Sail fills in the wind and has no"))
    for number in range(9)
]
QUERY = {"query": "the tail of a Comet, and dust", "mode": "hybrid"}


@pytest.fixture
def settings(chosen: Settings) -> Settings:
    return chosen.changed(feedback="texts", interleave="rrf:1", request_timeout_ms=10_000)


async def draft(client: httpx.AsyncClient, app: Any, **fields: object) -> list[tuple[str, str | None]]:
    """The whole ranking, of the rankings of both profiles: the id of each hit, and its profile."""
    rankings = []
    for profile in ("joint", "rrf"):
        found = await complete_response(client, **QUERY, profile=profile, limit=50, **fields)
        assert "profiles" not in found
        assert found["next_cursor"] is None
        rankings.append(found["hits"])
    search_service, anonymous = app.state.service.search, app.state.service.anonymous
    plan, _ = search_service.plan(SearchRequest(**QUERY), anonymous)  # type: ignore[arg-type]
    is_parent = fields.get("collapse") != "none"
    entries = [
        [Entry(hit["id"], (hit["parent_id"] or hit["id"]) if is_parent else hit["id"]) for hit in ranking]
        for ranking in rankings
    ]
    mixed = team_draft(*entries, lambda number: begins(plan, number))
    names = {True: "joint", False: "rrf"}
    return [
        (rankings[0 if each.is_first else 1][each.place]["id"], names[each.is_first] if each.counts else None)
        for each in mixed
    ]


def shown(response: dict[str, Any]) -> list[tuple[str, str | None]]:
    return list(zip(hit_ids(response), response["profiles"], strict=True))


async def pages(client: httpx.AsyncClient, **fields: object) -> list[tuple[str, str | None]]:
    """The hits of all pages."""
    found: list[tuple[str, str | None]] = []
    cursor: dict[str, object] = {}
    while True:
        response = await complete_response(client, **QUERY, **fields, **cursor)
        found += shown(response)
        if response["next_cursor"] is None:
            return found
        cursor = {"cursor": response["next_cursor"]}


async def check(settings: Settings) -> None:
    async with serving(settings, DOCUMENTS) as (app, client):
        for collapse in ("parent", "none"):
            expected = await draft(client, app, collapse=collapse)
            assert {profile for _, profile in expected} >= {"joint", "rrf"}
            response = await complete_response(client, **QUERY, limit=7, collapse=collapse)
            assert shown(response) == expected[:7]
            assert response["total"]["relation"] == "gte"
            assert response["total"]["value"] == len(expected)
            for limit in (3, 50):
                assert await pages(client, limit=limit, collapse=collapse) == expected
            ids = [id_ for id_, _ in expected]
            assert len(set(ids)) == len(ids)


async def test_hits_of_two_profiles_are_mixed_and_no_page_loses_any(settings: Settings) -> None:
    await check(settings)


@pytest.mark.server
async def test_hits_of_two_profiles_are_mixed_on_servers(settings: Settings, server_url: Callable[[str], str]) -> None:
    on_servers = {"keyword": server_url("opensearch"), "graph": server_url("bolt")}
    await check(settings.changed(index_name=f"test-{uuid.uuid4().hex}", source_timeout_ms=20_000, **on_servers))


@pytest.mark.parametrize(
    "fields",
    [
        {"profile": "joint"},
        {"fusion": "joint_walk()"},
        {"mode": "keyword"},
        {"explain": True},
        {"format": "context"},
        {"max_tokens": 200},
        {"min_score": 0.01},
        {"weights": {"vector": 2}},
        {"collapse": "window"},
        {"collapse": "url"},
        {"query": "", "like": {"text": "dust"}, "mode": "auto"},
        {"query": "", "mode": "auto", "filter": {"collection": "documents"}},
    ],
)
async def test_what_is_of_one_ranking_is_not_mixed(settings: Settings, fields: dict[str, Any]) -> None:
    async with serving(settings, DOCUMENTS) as (_, client):
        assert "profiles" not in await complete_response(client, **{**QUERY, **fields})


async def test_lines_of_a_batch_are_not_mixed(settings: Settings) -> None:
    async with serving(settings, DOCUMENTS) as (_, client):
        mixed = await complete_response(client, **QUERY)
        response = await client.post("/v1/search/batch", content=ndjson({**QUERY, "timeout_ms": 10_000}))
        line = json.loads(response.text)["response"]
        assert "profiles" in mixed
        assert "profiles" not in line
        assert (await complete_response(client, **QUERY)) | {"cache": 0, "took_ms": 0} != line


async def test_only_http_mixes_because_other_answers_have_no_query_id(settings: Settings) -> None:
    async with serving(settings, DOCUMENTS) as (app, client):
        service = app.state.service
        request = SearchRequest(**QUERY)  # type: ignore[arg-type]
        response = await service.search.respond(request, service.anonymous, "as the tools over MCP")
        assert b'"profiles"' not in response.content
        assert "profiles" in await complete_response(client, **QUERY)


async def test_both_rankings_are_of_the_day_of_the_first_page(settings: Settings) -> None:
    async with serving(settings, DOCUMENTS) as (app, client):
        cursor = (await complete_response(client, **QUERY, limit=3))["next_cursor"]
        search_service, anonymous = app.state.service.search, app.state.service.anonymous
        now = search_service.now() + 2 * 86_400
        search_service.now = lambda: now
        request = SearchRequest(**QUERY, cursor=cursor)  # type: ignore[arg-type]
        plan, _ = search_service.plan(request, anonymous, may_mix=True)
        assert plan.ranking.day == plan.other.ranking.day == now // 86_400 - 2


async def test_the_query_decides_and_equal_requests_have_equal_responses(settings: Settings) -> None:
    async with serving(settings.changed(interleave="rrf:0.5"), DOCUMENTS) as (_, client):
        mixed = {}
        for number in range(20):
            query = f"dust and a Comet {number}"
            first = await complete_response(client, query=query, mode="hybrid")
            again = await complete_response(client, query=query, mode="hybrid")
            computed = await complete_response(client, query=query, mode="hybrid", cache="bypass")
            assert (again["cache"], computed["cache"]) == ("l1", "miss")
            assert hit_ids(first) == hit_ids(again) == hit_ids(computed)
            assert first.get("profiles") == again.get("profiles") == computed.get("profiles")
            mixed[query] = "profiles" in first
    assert set(mixed.values()) == {True, False}


async def test_if_the_other_profile_fails_the_hits_are_those_of_the_settings(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(settings, DOCUMENTS) as (app, client):
        expected = hit_ids(await complete_response(client, **QUERY, profile="joint", limit=5))
        retrieval = app.state.service.search.retrieval
        retrieve = retrieval.retrieve

        async def failing(plan: Any, *arguments: Any) -> Any:
            if plan.strategy.startswith("rrf"):
                raise AllSourcesFailed((Failed("vector", "timeout", 1.0),))
            return await retrieve(plan, *arguments)

        monkeypatch.setattr(retrieval, "retrieve", failing)
        found = (await search(client, **QUERY, limit=5)).json()
        monkeypatch.undo()
        again = await complete_response(client, **QUERY, limit=5, cache="bypass")  # a degraded one is cached briefly
    assert hit_ids(found) == expected
    (degraded,) = found["degraded"]
    assert degraded["source"] == "interleave"
    assert degraded["reason"] == "the hits are of one profile: vector: timeout"
    assert ("profiles" in found, "profiles" in again) == (False, True)


async def test_the_other_profile_gets_half_of_the_remaining_time(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(settings.changed(source_timeout_ms=60_000), DOCUMENTS) as (app, client):
        expected = hit_ids(await complete_response(client, **QUERY, profile="joint", limit=5))
        retrieval = app.state.service.search.retrieval
        retrieve = retrieval.retrieve

        async def endless(plan: Any, *arguments: Any) -> Any:
            if plan.strategy.startswith("rrf"):
                await anyio.sleep_forever()
            return await retrieve(plan, *arguments)

        monkeypatch.setattr(retrieval, "retrieve", endless)
        found = (await search(client, **QUERY, limit=5, timeout_ms=4_000)).json()
    assert (hit_ids(found), "profiles" in found) == (expected, False)
    assert [each["reason"] for each in found["degraded"]] == ["the hits are of one profile: timed out"]
    assert found["timings_ms"]["interleave"] == pytest.approx(2_000, rel=0.25)


async def test_a_page_that_cannot_be_mixed_says_that_the_ranking_changed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(settings, DOCUMENTS) as (app, client):
        first = await complete_response(client, **QUERY, limit=3)
        retrieval = app.state.service.search.retrieval
        retrieve = retrieval.retrieve

        async def failing(plan: Any, *arguments: Any) -> Any:
            if plan.strategy.startswith("rrf"):
                raise AllSourcesFailed((Failed("vector", "timeout", 1.0),))
            return await retrieve(plan, *arguments)

        monkeypatch.setattr(retrieval, "retrieve", failing)
        second = (await search(client, **QUERY, limit=3, cursor=first["next_cursor"], cache="bypass")).json()
        assert "profiles" not in second
        assert [each["source"] for each in second["degraded"]] == ["interleave", "cursor"]
        monkeypatch.undo()
        second = await complete_response(client, **QUERY, limit=3, cursor=first["next_cursor"], cache="bypass")
        assert len(second["profiles"]) == 3


async def test_a_page_of_another_depth_says_that_the_ranking_changed(settings: Settings) -> None:
    """The cursor has the depth of the first ranking, and a hash with that of the other one."""
    async with serving(settings, DOCUMENTS) as (app, client):
        first = await complete_response(client, **QUERY, limit=3)
        search_service = app.state.service.search
        search_service.settings = settings.changed(candidates_per_source=400)
        second = (await search(client, **QUERY, limit=3, cursor=first["next_cursor"], cache="bypass")).json()
        assert [each["source"] for each in second["degraded"]] == ["cursor"]


async def test_a_hidden_document_of_either_ranking_is_not_shown(settings: Settings) -> None:
    hidden = [{**each, "visibility": "private", "owner": "alice"} for each in DOCUMENTS[::2]]
    async with serving(settings, [*DOCUMENTS, *hidden]) as (_, client):
        body = {**QUERY, "limit": 50, "timeout_ms": 10_000, "collapse": "none"}
        found = (await client.post("/v1/search", json=body, headers={"X-Trivium-User": "bob"})).json()
        assert "profiles" in found
        assert set(hit_ids(found)).isdisjoint(each["id"] for each in hidden)
        assert len(hit_ids(found)) == len(found["profiles"]) > 3


async def test_a_document_that_is_gone_leaves_the_others_with_their_profiles(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(settings, DOCUMENTS) as (app, client):
        whole = await complete_response(client, **QUERY, limit=6)
        gone = whole["hits"][2]["id"]
        view = type(app.state.service.search.snapshots.pin(SCOPE).documents)
        fetch = view.fetch

        async def without(self: Any, *arguments: Any) -> Any:
            return {id_: each for id_, each in (await fetch(self, *arguments)).items() if each.document.id != gone}

        monkeypatch.setattr(view, "fetch", without)
        found = await complete_response(client, **QUERY, limit=6, cache="bypass")
        assert shown(found) == [each for each in shown(whole) if each[0] != gone]
        assert found["total"]["value"] == whole["total"]["value"] - 1


async def test_an_evaluation_of_the_service_refuses_mixed_hits(settings: Settings) -> None:
    async with serving(settings, DOCUMENTS) as (_, client):
        found = await complete_response(client, **QUERY)
    with pytest.raises(IncompleteRun, match="TRIVIUM_INTERLEAVE"):
        require_complete(msgspec.convert(found, SearchResponse), "rrf, query 'q'")


async def test_feedback_says_which_profile_is_preferred(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(settings, DOCUMENTS) as (_, client):
        for number in range(8):
            found = await complete_response(client, query=f"dust and a Comet {number}", mode="hybrid", fields=["id"])
            (used, *_) = [id_ for id_, profile in shown(found) if profile == ("rrf" if number else "joint")]
            body = {"query_id": found["query_id"], "id": used, "kind": "used"}
            assert (await client.post("/v1/feedback", json=body)).status_code == 200
    recorded = list(FeedbackStore(settings.storage.data_dir / "feedback.sqlite", 1_000_000).read(SCOPE))
    assert all(len(response.profiles) == len(response.hits) == 10 for response, _ in recorded)
    for name, value in {
        "DATA_DIR": settings.storage.data_dir,
        "TENANT": SCOPE.tenant,
        "ENVIRONMENT": SCOPE.environment,
    }.items():
        monkeypatch.setenv(f"TRIVIUM_{name}", str(value))
    code, out, err = run("preferences", "--json")
    assert code == 0, err
    (preference,) = json.loads(out)
    assert (preference["profile"], preference["other"]) == ("joint", "rrf")
    assert (preference["wins"], preference["losses"], preference["ties"]) == (1, 7, 0)
    assert preference["p"] == pytest.approx(2 * (1 + 8) / 2**8)
    code, out, _ = run("preferences")
    assert code == 0
    assert "joint and rrf" in " ".join(out.split())


def test_without_feedback_there_are_no_preferences(chosen: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(chosen.storage.data_dir))
    code, _, err = run("preferences")
    assert (code, "a service records feedback with TRIVIUM_FEEDBACK" in " ".join(err.split())) == (2, True)


async def test_without_feedback_nothing_is_mixed(settings: Settings) -> None:
    with pytest.raises(SettingsError, match="TRIVIUM_INTERLEAVE needs TRIVIUM_FEEDBACK"):
        async with open_service(settings.changed(feedback="nothing")):
            pass


@pytest.mark.parametrize("value", ["rrf", "rrf:0", "rrf:2", "rfr:0.1"])
def test_a_wrong_share_is_reported(chosen: Settings, value: str) -> None:
    with pytest.raises(ValidationError, match="interleave"):
        chosen.changed(interleave=value)
