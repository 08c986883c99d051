"""``/v1/feedback``: what is recorded of responses, and what callers say about their hits."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from adapters import Scope, Sensitivity, Viewer
from adapters.model.feedback import Feedback, ShownResponse
from adapters.storage.feedback_store import FeedbackStore
from orchestrator.auth.key_admin import add_key
from orchestrator.http.app import create_app
from orchestrator.service import feedback
from orchestrator.service.feedback import query_hash
from orchestrator.settings import Settings
from tests.conftest import SCOPE
from tests.orchestrator.http.helpers import complete_response, index_documents, log_of, problem

pytestmark = pytest.mark.anyio

DOCUMENTS = [
    {"id": "comet", "text": "A comet has a tail of dust", "collection": "notes"},
    {"id": "comet", "text": "The comet of dust again", "collection": "mails"},
    {"id": "asteroid", "text": "An asteroid of dust and rock", "collection": "notes"},
    {"id": "planet", "text": "A planet forms from dust", "collection": "notes"},
]


@pytest.fixture
def settings(chosen: Settings) -> Settings:
    return chosen.changed(feedback="texts")


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[Starlette]:
    application = create_app(settings)
    async with application.router.lifespan_context(application):
        await index_documents(application, DOCUMENTS)
        yield application


async def give(client: httpx.AsyncClient, response: dict[str, Any], **fields: object) -> httpx.Response:
    body = {"query_id": response["query_id"], "kind": "used", **fields}
    return await client.post("/v1/feedback", json=body)


def stored(settings: Settings, scope: Scope = SCOPE) -> list[tuple[ShownResponse, list[Feedback]]]:
    path = settings.storage.data_dir / "feedback.sqlite"
    return list(FeedbackStore(path, 1_000_000).read(scope)) if path.exists() else []


async def test_feedback_is_stored_with_the_response(client: httpx.AsyncClient, settings: Settings) -> None:
    found = await complete_response(client, query="dust", limit=3)
    hits = [(hit["collection"], hit["id"], hit["id"]) for hit in found["hits"]]
    number = len(hits) - 1
    collection, id_, _ = hits[number]
    given = await give(client, found, id=id_, collection=collection)
    assert given.status_code == 200, given.text
    expected = {"query_id": found["query_id"], "id": id_, "collection": collection, "kind": "used"}
    assert given.json() == {**expected, "position": number + 1}
    again = await give(client, found, id=id_, collection=collection, position=7)
    assert again.json() == {**expected, "position": 7}
    assert (await give(client, found, id=id_, collection=collection, kind="useful")).status_code == 200
    ((response, of_it),) = stored(settings)
    assert (response.query_id, response.query, response.first) == (found["query_id"], "dust", 1)
    assert response.hits == tuple(hits)
    given_before, given_last = [(number, "used", 7), (number, "useful", number + 1)]
    assert [(each.hit, each.kind, each.position) for each in of_it] == [given_before, given_last]


async def test_every_response_has_its_own_query_id(client: httpx.AsyncClient, settings: Settings) -> None:
    """Also one from the cache, which has the position of its page."""
    first = await complete_response(client, query="dust", limit=2)
    cached = await complete_response(client, query="dust", limit=2)
    second = await complete_response(client, query="dust", limit=2, cursor=first["next_cursor"])
    assert cached["cache"] == "l1"
    for response in (first, cached, second):
        hit = response["hits"][0]
        assert (await give(client, response, id=hit["id"], collection=hit["collection"])).status_code == 200
    assert len({each["query_id"] for each in (first, cached, second)}) == 3
    assert [each.first for each, _ in stored(settings)] == [1, 1, 3]


async def test_lists_likeness_and_batches_are_not_recorded(client: httpx.AsyncClient, settings: Settings) -> None:
    await complete_response(client, query="", filter={"collection": "notes"})
    await complete_response(client, query="", like={"text": "dust"})
    assert (await client.post("/v1/search/batch", content='{"query": "dust"}')).status_code == 200
    found = await complete_response(client, query="dust", fields=["title"])
    hit = found["hits"][0]
    assert (await give(client, found, id=hit["id"], collection=hit["collection"])).status_code == 200
    assert [each.query_id for each, _ in stored(settings)] == [found["query_id"]]


@pytest.mark.parametrize(
    ("fields", "status", "detail"),
    [
        ({"id": "commet"}, 422, "id: 'commet' is no hit of this response, allowed are"),
        ({"id": "comet"}, 409, "collection: hits of "),
        ({"id": "comet", "collection": "note"}, 422, "collection: 'note', allowed are"),
        ({"id": "planet", "kind": "clicked"}, 422, "kind: 'clicked', allowed are not_useful, used, useful"),
        ({"id": "planet", "position": 0}, 422, "position: 0, allowed are"),
        ({"id": "planet", "positon": 1}, 422, "unknown field 'positon', allowed are"),
        ({"kind": "used"}, 422, "id: missing"),
        ({"id": "planet", "query_id": "0" * 32}, 404, "query_id: '00000000000000000000000000000000' is of no response"),
        ({"id": "planet", "query_id": "xyz"}, 422, "query_id: 'xyz'"),
    ],
)
async def test_wrong_feedback(
    client: httpx.AsyncClient, settings: Settings, fields: dict[str, Any], status: int, detail: str
) -> None:
    found = await complete_response(client, query="dust", limit=4, collapse="none")
    assert len(found["hits"]) == 4
    assert detail in problem(await give(client, found, **fields), status)["detail"]
    assert [of_it for _, of_it in stored(settings)] in ([[]], [])


async def test_only_the_hashes_of_queries_are_kept(chosen: Settings) -> None:
    settings = chosen.changed(feedback="ids")
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        await index_documents(app, DOCUMENTS)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await complete_response(client, query="dust and only dust")
    ((response, _),) = stored(settings)  # what waits is written when the service ends
    assert (response.query, response.query_hash) == (None, query_hash("dust and only dust"))
    assert b"only dust" not in b"".join(
        path.read_bytes() for path in settings.storage.data_dir.glob("feedback.sqlite*")
    )


async def test_without_the_setting_nothing_is_recorded(chosen: Settings) -> None:
    app = create_app(chosen)
    async with app.router.lifespan_context(app):
        await index_documents(app, DOCUMENTS)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            found = await complete_response(client, query="dust")
            assert len(found["query_id"]) == 32
            for response in (await give(client, found, id="planet"), await client.delete("/v1/feedback")):
                assert "TRIVIUM_FEEDBACK" in problem(response, 404)["detail"]
    assert not list(chosen.storage.data_dir.glob("feedback*"))


async def test_deleted_feedback_is_nowhere(client: httpx.AsyncClient, settings: Settings) -> None:
    found = await complete_response(client, query="a secret about dust")
    hit = found["hits"][0]
    assert (await give(client, found, id=hit["id"], collection=hit["collection"])).status_code == 200
    await complete_response(client, query="a secret about dust")
    assert (await client.delete("/v1/feedback")).json() == {"responses": 2, "feedback": 1}
    assert (await client.delete("/v1/feedback")).json() == {"responses": 0, "feedback": 0}
    assert problem(await give(client, found, id=hit["id"], collection=hit["collection"]), 404)
    assert stored(settings) == []
    for path in settings.storage.data_dir.glob("feedback.sqlite*"):
        assert b"secret" not in path.read_bytes()


async def test_feedback_is_for_callers_who_see_as_much_and_deleted_for_all_users(client: httpx.AsyncClient) -> None:
    alice, bob = {"X-Trivium-User": "alice"}, {"X-Trivium-User": "bob"}
    body = {"query": "dust", "timeout_ms": 10_000}
    found = (await client.post("/v1/search", json=body, headers=alice)).json()
    hit = found["hits"][0]
    given = {"query_id": found["query_id"], "id": hit["id"], "collection": hit["collection"], "kind": "used"}
    statuses = [
        (await client.post("/v1/feedback", json=given, headers=headers)).status_code for headers in (bob, alice, {})
    ]
    assert statuses == [404, 200, 200]
    refused = await client.delete("/v1/feedback", headers=alice)
    assert "deleted for all users of a tenant" in problem(refused, 403)["detail"]
    assert (await client.delete("/v1/feedback")).json()["responses"] == 1


async def test_feedback_stays_within_its_tenant_environment_and_clearance(chosen: Settings, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.touch()
    settings = chosen.changed(feedback="texts", keys_file=path, refresh_interval_ms=10)
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http_client:
            await index_documents(app, DOCUMENTS)
            here = Scope(settings.access.tenant, settings.access.environment)
            principals: dict[str, tuple[Scope, Sensitivity, bool]] = {
                "reader": (here, "normal", False),
                "admin": (here, "normal", True),
                "other tenant": (Scope("other", here.environment), "restricted", True),
                "other environment": (Scope(here.tenant, "other"), "restricted", True),
                "public": (here, "public", False),
            }
            headers = {
                name: {"Authorization": f"Bearer {add_key(path, name, scope, clearance, admin=admin)}"}
                for name, (scope, clearance, admin) in principals.items()
            }
            app.state.service.keyring.refresh()
            body = {"query": "dust", "timeout_ms": 10_000}
            found = (await http_client.post("/v1/search", json=body, headers=headers["reader"])).json()
            hit = found["hits"][0]
            given = {
                "query_id": found["query_id"], "id": hit["id"], "collection": hit["collection"], "kind": "used",
            }  # fmt: skip
            assert (await http_client.post("/v1/feedback", json=given)).status_code == 401
            for name in ("other tenant", "other environment", "public"):
                response = await http_client.post("/v1/feedback", json=given, headers=headers[name])
                unknown = {**given, "query_id": "0" * 32}
                same = await http_client.post("/v1/feedback", json=unknown, headers=headers[name])
                details = [problem(each, 404)["detail"] for each in (response, same)]
                assert details[0].replace(found["query_id"], "0" * 32) == details[1]
                if name != "public":
                    assert (await http_client.delete("/v1/feedback", headers=headers[name])).json()["responses"] == 0
            assert (await http_client.post("/v1/feedback", json=given, headers=headers["reader"])).status_code == 200
            assert (await http_client.delete("/v1/feedback", headers=headers["reader"])).status_code == 403
            assert (await http_client.delete("/v1/feedback", headers=headers["admin"])).json() == {
                "responses": 1, "feedback": 1,
            }  # fmt: skip


async def test_a_file_that_cannot_be_written_stops_no_search(
    client: httpx.AsyncClient, app: Starlette, settings: Settings
) -> None:
    found = await complete_response(client, query="dust")
    hit = found["hits"][0]
    given = {"id": hit["id"], "collection": hit["collection"]}
    assert (await give(client, found, **given)).status_code == 200
    app.state.service.feedback._store.close()
    (settings.storage.data_dir / "feedback.sqlite").write_bytes(b"no database" * 1_000)
    with log_of(feedback.__name__) as lines:
        for number in range(3):
            await complete_response(client, query=f"more dust {number}")
            await app.state.service.feedback.flush()
    assert len(lines) == 1
    assert "file is not a database" in lines[0]["message"]
    await complete_response(client, query="dust again")
    detail = problem(await give(client, found, **given), 503)["detail"]
    assert str(settings.storage.data_dir) not in detail
    assert app.state.service.feedback.dropped == 4


async def test_what_waits_is_bounded(
    client: httpx.AsyncClient, app: Starlette, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback, "_MAX_WAITING_BYTES", 10)
    found = await complete_response(client, query="dust")
    assert app.state.service.feedback.dropped == 1
    assert problem(await give(client, found, id="planet"), 404)


async def test_another_process_finds_what_this_one_returned(client: httpx.AsyncClient, settings: Settings) -> None:
    other = create_app(settings)
    async with other.router.lifespan_context(other):
        transport = httpx.ASGITransport(other, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as second:
            found = await complete_response(client, query="dust")
            hit = found["hits"][0]
            assert (await give(second, found, id=hit["id"], collection=hit["collection"])).status_code == 200


def test_the_file_is_a_database_of_sqlite(tmp_path: Path) -> None:
    """Operators may read it with any tool."""
    store = FeedbackStore(tmp_path / "feedback.sqlite", 1_000_000)
    store.add([ShownResponse("0" * 32, SCOPE, Viewer("normal"), 1.0, "h", "q", 1, (("c", "d", "e"),))])
    store.close()
    with sqlite3.connect(tmp_path / "feedback.sqlite") as connection:
        assert connection.execute("SELECT query, hits FROM responses").fetchall() == [("q", b'[["c","d","e"]]')]
