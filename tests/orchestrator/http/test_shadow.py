"""Shadow searches: a share of the live ones again, under another profile."""

from __future__ import annotations

import asyncio
import json
import random
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import kendalltau

from orchestrator.evaluation.shadow_report import days_of
from orchestrator.execution.stage_results import AllSourcesFailed, Failed
from orchestrator.retrieval.circuit_breakers import MAX_FAILURES
from orchestrator.schema.search import SearchRequest
from orchestrator.service import shadow
from orchestrator.service.errors import Overloaded
from orchestrator.service.shadow import COMPARED, FAILED, compare
from orchestrator.settings import Settings
from tests.orchestrator.http.helpers import complete_response, hit_ids, index_documents, log_of, ndjson, serving
from tests.orchestrator.http.test_metrics import eventually
from tests.orchestrator.served import Serve, environment
from tests.orchestrator.telemetry.test_metrics import values
from tests.secrets import LOGGED

pytestmark = pytest.mark.anyio

QUERIES = ("dough for bread", "a comet and dust", "the oven", "stars")
DOCUMENTS: list[dict[str, Any]] = [
    {
        "id": f"{topic}-{number}",
        "text": f"{text} {number}",
        "collection": "notes" if number % 2 else "mails",
        "links": [{"target": f"{topic}-{number + 1}", "type": "next"}] if number < 7 else [],
    }
    for topic, text in (
        ("bread", "A dough of flour rises in the oven"),
        ("stars", "A comet has a tail of dust"),
        ("boats", "A sail fills in the wind"),
    )
    for number in range(8)
]


async def outcomes(client: httpx.AsyncClient, count: int) -> dict[str, int]:
    """The number of chosen requests by outcome, as soon as there are so many."""
    async with asyncio.timeout(60):
        while True:
            found = values((await client.get("/metrics")).text)
            by_outcome = {
                outcome: int(found.get(f"trivium_shadow_searches_total{{outcome={outcome}}}", 0))
                for outcome in ("compared", "failed", "skipped")
            }
            if sum(by_outcome.values()) >= count:
                return by_outcome
            await asyncio.sleep(0.02)


@pytest.fixture
def shadow_lines() -> Iterator[list[dict[str, Any]]]:
    """The lines of the log about shadow searches."""
    with log_of(shadow.__name__) as lines:
        yield lines


async def test_both_rankings_are_compared(chosen: Settings, shadow_lines: list[dict[str, Any]]) -> None:
    await check_comparisons(chosen.changed(shadow="rrf:1"), shadow_lines)


@pytest.mark.server
async def test_both_rankings_are_compared_on_servers(
    chosen: Settings, shadow_lines: list[dict[str, Any]], server_url: Callable[[str], str]
) -> None:
    on_servers = {"keyword": server_url("opensearch"), "graph": server_url("bolt")}
    name = f"test-{uuid.uuid4().hex}"
    settings = chosen.changed(shadow="rrf:1", index_name=name, source_timeout_ms=20_000, **on_servers)
    await check_comparisons(settings, shadow_lines)


async def check_comparisons(settings: Settings, shadow_lines: list[dict[str, Any]]) -> None:
    """Each comparison has the figures of the two responses; the metrics have their sums."""
    async with serving(settings, DOCUMENTS) as (_, client):
        before = values((await client.get("/metrics")).text)
        found = [await complete_response(client, query=query, mode="hybrid", limit=7) for query in QUERIES]
        assert await outcomes(client, len(QUERIES)) == {"compared": len(QUERIES), "failed": 0, "skipped": 0}
        after = values((await client.get("/metrics")).text)
        others = [
            await complete_response(client, query=query, mode="hybrid", limit=7, profile="rrf") for query in QUERIES
        ]
        assert (await outcomes(client, 0))["compared"] == len(QUERIES)  # a profile that a request names is not compared
    assert {line["message"] for line in shadow_lines} == {COMPARED}
    for live, other, line in zip(found, others, shadow_lines, strict=True):
        assert line["request_id"] == live["request_id"]
        assert (line["live"], line["shadow"]) == ("joint", "rrf")
        assert line["overlap"] == len(set(hit_ids(live)) & set(hit_ids(other))) / 7
        assert line["same_first"] == (hit_ids(live)[0] == hit_ids(other)[0])
        common = [id_ for id_ in hit_ids(live) if id_ in hit_ids(other)]
        tau = kendalltau(range(len(common)), [hit_ids(other).index(id_) for id_ in common]).statistic
        assert line["rank_correlation"] == pytest.approx(tau)
        assert min(line["live_ms"], line["shadow_ms"]) > 0
    assert any(hit_ids(live) != hit_ids(other) for live, other in zip(found, others, strict=True))

    def grown(name: str) -> float:
        return after[f"trivium_shadow_{name}"] - before.get(f"trivium_shadow_{name}", 0)

    assert grown("overlap_count") == grown("same_order_count") == len(QUERIES)
    assert grown("overlap_sum") == pytest.approx(sum(line["overlap"] for line in shadow_lines))
    in_order = sum((1 + line["rank_correlation"]) / 2 for line in shadow_lines)
    assert grown("same_order_sum") == pytest.approx(in_order)
    for name, key in (("live", "live_ms"), ("shadow", "shadow_ms")):
        seconds = sum(line[key] for line in shadow_lines) / 1_000
        assert grown(f"comparison_seconds_sum{{search={name}}}") == pytest.approx(seconds)


@pytest.mark.process
def test_the_log_of_a_service_has_a_report(serve: Serve, tmp_path: Path, model_dir: Path) -> None:
    env = environment(data_dir=tmp_path / "data", model_dir=model_dir, shadow="weighted_rrf:1")
    with serve(env, until="/livez") as (_, address), httpx.Client(base_url=address, timeout=30) as client:
        client.post("/v1/documents", content=ndjson(*DOCUMENTS)).raise_for_status()
        client.post("/v1/search", json={"query": QUERIES[0], "timeout_ms": 10_000}).raise_for_status()
        compared = "trivium_shadow_searches_total{outcome=compared}"
        eventually(lambda: values(client.get("/metrics").text).get(compared) == 1)
    with LOGGED.open("rb") as log:
        reported = [each for each in days_of(log) if each.shadow == "weighted_rrf"]
    assert [(each.live, each.compared, each.failed) for each in reported] == [("joint", 1, 0)]


async def test_the_log_has_no_text_and_no_document(chosen: Settings, shadow_lines: list[dict[str, Any]]) -> None:
    async with serving(chosen.changed(shadow="rrf:1"), DOCUMENTS) as (_, client):
        await complete_response(client, query="flour for the baker")
        await outcomes(client, 1)
    written = json.dumps(shadow_lines, default=repr)
    assert "baker" not in written
    assert "bread-" not in written


@pytest.mark.parametrize(
    "body",
    [
        {"profile": "joint"},
        {"fusion": "rrf(k=10)"},
        {"mode": "keyword"},
        {"query": "", "filter": {"collection": "notes"}},
        {"query": "the sail"},  # a second time: from the cache
    ],
)
async def test_what_says_nothing_of_the_profile_is_not_searched_again(chosen: Settings, body: dict[str, Any]) -> None:
    async with serving(chosen.changed(shadow="rrf:1"), DOCUMENTS) as (_, client):
        await complete_response(client, query="the sail", mode="hybrid")
        await complete_response(client, **{"query": "dough", "mode": "hybrid", **body})
        page = await complete_response(client, query="dust", mode="hybrid", limit=2)
        await complete_response(client, query="dust", mode="hybrid", limit=2, cursor=page["next_cursor"])
        line = {"query": "wind", "mode": "hybrid", "timeout_ms": 10_000}
        assert (await client.post("/v1/search/batch", content=json.dumps(line))).json()["status"] == 200
        await complete_response(client, query="oven", mode="hybrid")
        # "the sail", the first page of "dust", "oven": requests are processed in their order
        assert await outcomes(client, 3) == {"compared": 3, "failed": 0, "skipped": 0}


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Shadow searches wait until it is set."""
    opened = asyncio.Event()
    searched = shadow.Shadow._response

    async def response(self: shadow.Shadow, *arguments: Any) -> Any:
        await opened.wait()
        return await searched(self, *arguments)

    monkeypatch.setattr(shadow.Shadow, "_response", response)
    return opened


async def test_responses_wait_for_no_shadow_search(
    chosen: Settings, gate: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow, "_MAX_WAITING", 2)
    async with serving(chosen.changed(shadow="rrf:1"), DOCUMENTS) as (_, client):
        for number in range(8):
            await complete_response(client, query=f"dough {number}", mode="hybrid")
        assert (await outcomes(client, 5))["skipped"] == 5  # one runs, two wait
        gate.set()
        assert await outcomes(client, 8) == {"compared": 3, "failed": 0, "skipped": 5}


async def test_rankings_of_different_documents_are_not_compared(chosen: Settings, gate: asyncio.Event) -> None:
    async with serving(chosen.changed(shadow="rrf:1"), DOCUMENTS) as (app, client):
        await complete_response(client, query="dough", mode="hybrid")
        await index_documents(app, [{"id": "new", "text": "dough and more dough"}])
        await complete_response(client, query="dough", mode="hybrid")
        gate.set()
        assert await outcomes(client, 2) == {"compared": 1, "failed": 0, "skipped": 1}


async def test_a_failure_ends_no_shadow_search_but_its_own(
    chosen: Settings, shadow_lines: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[Exception] = [
        RuntimeError("a bug"),
        AllSourcesFailed((Failed("vector", "connection refused", 1.0),)),
        Overloaded(over_quota=True),
    ]
    async with serving(chosen.changed(shadow="rrf:1"), DOCUMENTS) as (app, client):
        retrieval = app.state.service.shadow._search.retrieval
        retrieve = retrieval.retrieve

        async def fail_first(*arguments: Any) -> Any:
            if errors:
                raise errors.pop(0)
            return await retrieve(*arguments)

        monkeypatch.setattr(retrieval, "retrieve", fail_first)
        for number in range(4):
            await complete_response(client, query=f"dough {number}", mode="hybrid")
        assert await outcomes(client, 4) == {"compared": 1, "failed": 2, "skipped": 1}
    assert [line["message"] for line in shadow_lines] == ["a shadow search failed", FAILED, COMPARED]
    assert "connection refused" in shadow_lines[1]["reason"]


async def test_failures_of_shadow_searches_open_no_circuit_of_live_ones(chosen: Settings) -> None:
    async with serving(chosen.changed(shadow="rrf:1"), DOCUMENTS) as (app, _):
        service = app.state.service
        live, own = service.search.retrieval.breakers, service.shadow._search.retrieval.breakers
        for _ in range(MAX_FAILURES):
            own.record({"vector": Failed("vector", "connection refused", 1.0)})
        assert own.states() == {"vector": "open"}
        assert live.split(["vector"])[0] == ["vector"]


async def test_a_share_is_chosen(chosen: Settings) -> None:
    async with serving(chosen.changed(shadow="rrf:0.3"), DOCUMENTS) as (app, _):
        service, offered = app.state.service, 1_000
        request = SearchRequest(query="dough", mode="hybrid", timeout_ms=10_000)
        response = await service.search.respond(request, service.anonymous, "request")
        counted: list[str] = []
        fresh = shadow.Shadow(service.search, "rrf", 0.3, random.Random(1).random)
        fresh.observe = lambda outcome, _: counted.append(outcome)
        for _ in range(offered):
            fresh.offer(request, service.anonymous, "request", response)
        chosen_of_all = len(counted) + fresh._waiting.qsize()
        assert 0.25 * offered < chosen_of_all < 0.35 * offered


@given(st.lists(st.integers(0, 20), unique=True), st.lists(st.integers(0, 20), unique=True))
def test_a_comparison(live: list[int], other: list[int]) -> None:
    found = compare([("c", str(each)) for each in live], [("c", str(each)) for each in other], 1.0, 2.0)
    common = [each for each in live if each in other]
    longest = max(len(live), len(other))
    assert found.overlap == (len(common) / longest if longest else 1.0)
    assert found.same_first == (live[:1] == other[:1])
    if len(common) < 2:
        assert found.rank_correlation is None
    else:
        tau = kendalltau(range(len(common)), [other.index(each) for each in common]).statistic
        assert found.rank_correlation == pytest.approx(tau)


def test_equal_ids_of_two_collections_are_different_hits() -> None:
    assert compare([("a", "1")], [("b", "1")], 1.0, 1.0).overlap == 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("rfr:0.1", "the profile 'rfr', allowed are joint, fast, quality, rrf, weighted_rrf; the nearest is rrf"),
        ("rrf", "the share '', allowed are numbers above 0 up to 1, such as rrf:0.05"),
        ("rrf:0", "the share '0', allowed are"),
        ("rrf:1.1", "the share '1.1', allowed are"),
        ("rrf:nan", "the share 'nan', allowed are"),
        ("rrf:5%", "the share '5%', allowed are"),
    ],
)
def test_a_wrong_setting(value: str, message: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(message)):
        Settings.of(shadow=value)
