"""``TRIVIUM_FUSION=learned(FILE)``: a service ranks by it, says so, and never returns a response of another file."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from fusion.learned import UNIT, encode
from fusion.trees import Tree
from orchestrator.bootstrap.service import open_service
from orchestrator.schema.search import SearchRequest
from orchestrator.settings import Settings
from orchestrator.settings.loading import SettingsError
from tests.orchestrator.http.helpers import complete_response, hit_ids, problem, search, serving

pytestmark = pytest.mark.anyio

QUERY = {"query": "a film by Christopher Nolan", "mode": "hybrid"}


def model(path: Path, feature: str, base: str = "joint_walk()") -> str:
    """A file with which the first document of a source comes first, as the setting names it."""
    trees = [Tree([0], [0.75], [~0], [~1], [0, round(100 / UNIT)])]
    path.write_bytes(encode(base, [feature], trees))
    return f"learned({path})"


async def first_of(client: httpx.AsyncClient, source: str) -> str:
    return hit_ids(await complete_response(client, query=QUERY["query"], mode=source))[0]


async def check(settings: Settings, path: Path) -> None:
    """The first hit is that of the source that the trees prefer; the rest is as before."""
    async with serving(settings) as (_, client):
        firsts = {source: await first_of(client, source) for source in ("keyword", "vector")}
        before = await complete_response(client, **QUERY, explain=True)
    seen = set()
    for source, first in firsts.items():
        changed = settings.changed(fusion=model(path, f"{source}.rank"))
        async with serving(changed, []) as (_, client):
            found = await complete_response(client, **QUERY, explain=True)
            as_before = await complete_response(client, **QUERY, profile="joint")
        assert hit_ids(found) == [first, *(id_ for id_ in hit_ids(before) if id_ != first)]
        assert [each["sources"] for each in found["hits"]] == [
            next(hit["sources"] for hit in before["hits"] if hit["id"] == each["id"]) for each in found["hits"]
        ]
        assert found["explain"]["fusion"].startswith("learned(")
        assert str(path) not in str(found)
        seen.add(found["explain"]["fusion"])
        assert hit_ids(as_before) == hit_ids(before)
    assert len(seen) == 2


async def test_a_service_ranks_by_the_trees(chosen: Settings, tmp_path: Path) -> None:
    await check(chosen, tmp_path / "learned.json")


@pytest.mark.server
async def test_a_service_on_servers_ranks_by_the_trees(
    chosen: Settings, tmp_path: Path, server_url: Callable[[str], str]
) -> None:
    on_servers = {"keyword": server_url("opensearch"), "graph": server_url("bolt")}
    name = f"test-{uuid.uuid4().hex}"
    await check(chosen.changed(index_name=name, source_timeout_ms=20_000, **on_servers), tmp_path / "learned.json")


async def test_a_strategy_without_seeds_searches_all_sources_at_once(chosen: Settings, tmp_path: Path) -> None:
    for base, stages in (("joint_walk()", {1, 2}), ("rrf()", {1})):
        settings = chosen.changed(fusion=model(tmp_path / "learned.json", "vector.rank", base))
        async with serving(settings, []) as (app, _):
            service = app.state.service
            plan, _ = service.search.plan(SearchRequest(query="x", mode="hybrid"), service.anonymous)
            assert {call.stage for call in plan.ranking.calls} == stages


async def test_a_cached_response_is_of_the_same_file(chosen: Settings, tmp_path: Path) -> None:
    path, found = tmp_path / "learned.json", []
    for source in ("vector", "keyword", "vector"):
        settings = chosen.changed(fusion=model(path, f"{source}.rank"))
        async with serving(settings, []) as (app, _):
            plan, hashed = app.state.service.search.plan(SearchRequest(query="x"), app.state.service.anonymous)
            assert str(path) not in str(plan)
            found.append(hashed)
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize("written", ["learned({path})", "learned({name})", "learned()", "learned"])
async def test_a_request_cannot_name_a_file(chosen: Settings, tmp_path: Path, written: str) -> None:
    path = tmp_path / "learned.json"
    async with serving(chosen.changed(fusion=model(path, "vector.rank"))) as (_, client):
        found = await complete_response(client, **QUERY, explain=True)
        name = found["explain"]["fusion"].removeprefix("learned(").removesuffix(")")
        response = await search(client, **QUERY, fusion=written.format(path=path, name=name))
        assert "unknown fusion strategy 'learned" in problem(response, 422)["detail"]


@pytest.mark.parametrize("written", ["learned", "learned()", "learnt(x)"])
def test_a_setting_that_names_no_file_names_the_form(chosen: Settings, written: str) -> None:
    with pytest.raises(ValidationError, match=r"or learned\(FILE\), with a file of `trivium tune --learn`"):
        chosen.changed(fusion=written)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        (b"{}", "not a file of trivium tune --learn"),
        (b" " * 2_000_000, "not a file of trivium tune --learn"),
    ],
)
async def test_a_file_that_cannot_be_used_is_reported_at_the_start(
    chosen: Settings, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    path = tmp_path / "learned.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match=f"^TRIVIUM_FUSION: {path} cannot be used: {reason}"):
        async with open_service(chosen.changed(fusion=f"learned({path})")):
            pass
