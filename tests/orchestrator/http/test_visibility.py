"""Visibility over HTTP: keys with a user, headers that name one, every path, and caches."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from adapters import Scope, Viewer
from orchestrator import client as trivium_client
from orchestrator.auth.key_admin import add_key
from orchestrator.client.calls import caller_headers
from tests.orchestrator.http.helpers import KeyedClient, index_documents, ndjson, problem
from tests.truth_table import DOCUMENTS, VIEWERS, visible

pytestmark = pytest.mark.anyio

ALICE = {"X-Trivium-User": "alice"}
BOB = {"X-Trivium-User": "bob", "X-Trivium-Teams": "legal, sales"}
PRIVATE = {"id": "private", "text": "alpha", "visibility": "private", "owner": "alice"}
OF_TEAM = {"id": "team", "text": "alpha", "visibility": "team", "team": "legal", "parent_id": "open", "chunk_index": 1}
OPEN = {"id": "open", "text": "alpha", "parent_id": "open", "chunk_index": 0}


def headers_of(viewer: Viewer) -> dict[str, str]:
    headers = {} if viewer.user is None else {"X-Trivium-User": viewer.user}
    return headers | ({"X-Trivium-Teams": ",".join(viewer.teams)} if viewer.teams else {})


@pytest.fixture
async def with_table(app: FastAPI, client: httpx.AsyncClient) -> httpx.AsyncClient:
    """A service with the documents of the truth table, whose caller has the clearance ``normal``."""
    documents = [
        {"id": id_, "text": each.text} | {k: v for k, v in each.protection._asdict().items() if v is not None}
        for id_, each in DOCUMENTS.items()
    ]
    await index_documents(app, documents)
    return client


@pytest.mark.parametrize("viewer", VIEWERS, ids=str)
async def test_each_row_of_the_truth_table_holds_on_every_path(with_table: httpx.AsyncClient, viewer: Viewer) -> None:
    client, headers, said = with_table, headers_of(viewer), visible(viewer)
    body = {"query": "Alpha Centauri", "limit": 50, "timeout_ms": 10_000}
    seen: dict[str, set[str]] = {}
    for name, fields in (
        ("search", body),
        ("search again, from the cache", body),
        *((mode, body | {"mode": mode}) for mode in ("vector", "keyword", "graph")),
        ("list", {"query": "", "limit": 50, "filter": {"collection": "documents"}}),
        ("like", {"query": "", "like": {"text": "Alpha Centauri"}, "limit": 50, "timeout_ms": 10_000}),
    ):
        response = (await client.post("/v1/search", json=fields, headers=headers)).json()
        assert response.get("degraded") == [], (name, response)
        seen[name] = {hit["id"] for hit in response["hits"]}
    lines = await client.post("/v1/search/batch", content=json.dumps(body), headers=headers)
    seen["batch"] = {hit["id"] for hit in json.loads(lines.text)["response"]["hits"]}
    listed = (await client.get("/v1/documents?limit=100", headers=headers)).json()["documents"]
    seen["documents"] = {each["id"] for each in listed}
    statuses = {id_: (await client.get(f"/v1/documents/{id_}", headers=headers)).status_code for id_ in DOCUMENTS}
    assert set(statuses.values()) <= {200, 404}
    seen["document"] = {id_ for id_, status in statuses.items() if status == 200}
    counts = (await client.get("/v1/collections", headers=headers)).json()["collections"]
    for path, ids in seen.items():
        assert {id_: id_ in ids for id_ in said} == said, path
        assert ids == seen["document"], path
        assert counts == ([{"name": "documents", "documents": len(ids)}] if ids else [])


@pytest.fixture
async def shared(keyed: KeyedClient) -> AsyncIterator[KeyedClient]:
    """A service with one private document, one of a team, and one for the tenant."""
    written = await keyed.request("root", "POST", "/v1/documents", content=ndjson(PRIVATE, OF_TEAM, OPEN))
    assert written.json()["indexed"] == 3
    yield keyed


async def found(keyed: KeyedClient, name: str, headers: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    body = {"query": "alpha", "timeout_ms": 10_000, "collapse": "none", **fields}
    response = await keyed.request(name, "POST", "/v1/search", json=body, headers=headers or {})
    assert response.status_code == 200, response.text
    parsed: dict[str, Any] = response.json()
    return parsed


def ids(response: dict[str, Any]) -> set[str]:
    return {hit["id"] for hit in response["hits"]}


async def test_a_cached_response_is_returned_to_no_other_user(shared: KeyedClient) -> None:
    assert ids(await found(shared, "reader")) == {"private", "team", "open"}
    for headers, visible_ids in ((ALICE, {"private", "open"}), (BOB, {"team", "open"})):
        for expected in ("miss", "l1"):
            response = await found(shared, "reader", headers)
            assert (ids(response), response["cache"]) == (visible_ids, expected)
    reordered = {"X-Trivium-Teams": "sales,legal", "X-Trivium-User": "bob"}
    assert (await found(shared, "reader", reordered))["cache"] == "l1"


async def test_a_key_with_a_user_acts_for_it_and_names_no_other(shared: KeyedClient) -> None:
    scope = Scope("acme", "live")
    keys = {
        "alice": add_key(shared.path, "alice", scope, "normal", user="alice"),
        "bob": add_key(shared.path, "bob", scope, "normal", user="bob", teams=["legal"], admin=True),
        "bot": add_key(shared.path, "bot", scope, "normal", teams=["legal"]),
    }
    for name, key in keys.items():
        shared.add(name, key)
    assert [ids(await found(shared, name)) for name in keys] == [
        {"private", "open"},
        {"team", "open"},
        {"team", "open"},
    ]
    for headers in (ALICE, BOB, {"X-Trivium-Teams": "legal"}):
        refused = await shared.request("bot", "POST", "/v1/search", json={"query": "alpha"}, headers=headers)
        assert "'bot' acts for a user or teams already" in problem(refused, 403)["detail"]


@pytest.mark.parametrize(
    ("headers", "detail"),
    [
        ({"X-Trivium-User": ""}, "x-trivium-user: '', allowed are names of 1 to 512 bytes without a comma"),
        ({"X-Trivium-User": "  "}, "x-trivium-user: '', allowed are names of 1 to 512 bytes without a comma"),
        ({"X-Trivium-Teams": ""}, "x-trivium-teams: '', allowed are names of 1 to 512 bytes without a comma"),
        ({"X-Trivium-User": "alice", "X-Trivium-Teams": "legal,"}, "x-trivium-teams: '', allowed are names"),
        ({"X-Trivium-User": "a" * 513}, "allowed are names of 1 to 512 bytes without a comma"),
        ({"X-Trivium-Teams": ",".join(map(str, range(257)))}, "257 teams, allowed are 256"),
        (
            {"X-Trivium-Usr": "alice"},
            "unknown header 'x-trivium-usr', allowed are x-trivium-user, x-trivium-teams; the nearest is",
        ),
        (
            {"X-Trivium-Team": "legal"},
            "unknown header 'x-trivium-team', allowed are x-trivium-user, x-trivium-teams; the nearest",
        ),
        ({"X-Trivium-User": b"\xff"}, "x-trivium-user: is not UTF-8"),
        ({"X-Trivium-User": "a,b"}, "x-trivium-user: 'a,b', allowed are names of 1 to 512 bytes without a comma"),
        ({"X-Trivium_User": "alice"}, "unknown header 'x-trivium_user', allowed are"),
        ({"X-TriviumUser": "alice"}, "unknown header 'x-triviumuser', allowed are"),
        ([("X-Trivium-User", "alice"), ("X-Trivium-User", "bob")], "'x-trivium-user' is repeated"),
    ],
)
async def test_what_was_to_narrow_a_request_is_never_ignored(
    client: httpx.AsyncClient, headers: Any, detail: str
) -> None:
    for method, path in (
        ("POST", "/v1/search"),
        ("GET", "/v1/documents"),
        ("POST", "/mcp"),
        ("DELETE", "/v1/feedback"),
    ):
        response = await client.request(method, path, headers=headers)
        assert detail in problem(response, 400)["detail"]


async def test_names_are_utf_8(shared: KeyedClient) -> None:
    document = {"id": "of zoë", "text": "alpha", "visibility": "private", "owner": "Zoë"}
    await shared.request("root", "POST", "/v1/documents", content=ndjson(document))
    zoe: Any = {"X-Trivium-User": "Zoë".encode()}
    assert ids(await found(shared, "reader", zoe)) == {"of zoë", "open"}


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"visibility": "private"}, "owner: missing, a document with the visibility 'private' needs one"),
        ({"visibility": "team", "owner": "bob"}, "team: missing, a document with the visibility 'team' needs one"),
        ({"visibility": "privat"}, "the nearest is private"),
        (
            {"visibility": "private", "owner": "alice"},
            "owner: 'alice' is another user, who alone could see the document",
        ),
        ({"visibility": "team", "team": "hr"}, "team: 'hr' is not one of yours, so you could not see the document"),
        ({"owner": "a\nb"}, "owner: 'a\\nb', allowed are names of 1 to 512 bytes without a comma"),
        ({"owner": " alice"}, "owner: ' alice', allowed are names"),
        ({"owner": "é" * 300}, "allowed are names of 1 to 512 bytes"),
        ({"team": "a,b"}, "team: 'a,b', allowed are names of 1 to 512 bytes without a comma"),
        ({"id": "private"}, "id: 'private' is taken by a document that you may not see"),
    ],
)
async def test_a_document_that_its_writer_could_not_see_is_refused(
    shared: KeyedClient, document: dict[str, str], error: str
) -> None:
    content = ndjson({"id": "new", "text": "x"} | document)
    outcome = (await shared.request("root", "POST", "/v1/documents", content=content, headers=BOB)).json()
    assert (outcome["indexed"], outcome["rejected"]) == (0, 1)
    assert error in outcome["lines"][0]["error"]
    assert (await shared.request("root", "GET", "/v1/documents/private")).json()["text"] == "alpha"


async def test_a_user_deletes_what_it_sees_and_nothing_else(shared: KeyedClient) -> None:
    for id_ in ("private", "nothing"):
        deleted = await shared.request("root", "DELETE", f"/v1/documents/{id_}", headers=BOB)
        assert deleted.json()["deleted"] is False
    condition = {"filter": {"collection": "documents"}}
    many = await shared.request("root", "DELETE", "/v1/documents", json=condition, headers=BOB)
    assert many.json()["deleted"] == 2
    assert ids(await found(shared, "root", cache="bypass")) == {"private"}


async def test_filters_and_facets_see_visibility_owner_and_team(shared: KeyedClient) -> None:
    facets = {"visibility": 5, "owner": 5, "team": 5}
    everything = await found(shared, "reader", facets=facets)
    counted = {name: {each["value"]: each["count"] for each in facet["values"]} for name, facet in
               everything["facets"].items()}  # fmt: skip
    assert counted == {
        "visibility": {"private": 1, "team": 1, "tenant": 1},
        "owner": {"alice": 1},
        "team": {"legal": 1},
    }
    assert {hit["id"]: hit["visibility"] for hit in everything["hits"]} == {
        "private": "private", "team": "team", "open": "tenant",
    }  # fmt: skip
    of_bob = await found(shared, "reader", BOB, facets={"owner": 5})
    assert of_bob["facets"]["owner"]["values"] == []
    for condition, expected in (
        ({"visibility": "private"}, {"private"}),
        ({"visibility": ["tenant", "team"]}, {"team", "open"}),
        ({"owner": "alice"}, {"private"}),
        ({"team": "legal"}, {"team"}),
    ):
        assert ids(await found(shared, "reader", filter=condition)) == expected
    assert ids(await found(shared, "reader", BOB, filter={"owner": "alice"})) == set()
    wrong = {"query": "alpha", "filter": {"visibility": "privat"}}
    refused = await shared.request("reader", "POST", "/v1/search", json=wrong)
    assert "the nearest is private" in problem(refused, 422)["detail"]


async def test_neighbours_of_a_hit_and_of_a_document_are_narrowed(shared: KeyedClient) -> None:
    everything = await found(shared, "reader", neighbors=1)
    assert {each for hit in everything["hits"] for each in hit["neighbor_ids"]} == {"open", "team"}
    of_alice = await found(shared, "reader", ALICE, neighbors=1)
    assert {each for hit in of_alice["hits"] for each in hit["neighbor_ids"]} == set()
    path = "/v1/documents/team/neighbors"
    assert (await shared.request("reader", "GET", path)).status_code == 200
    assert (await shared.request("reader", "GET", path, headers=ALICE)).status_code == 404


async def test_a_cursor_of_one_user_shows_another_one_nothing_of_it(shared: KeyedClient) -> None:
    first = await found(shared, "reader", ALICE, limit=1)
    body = {"query": "alpha", "limit": 1, "cursor": first["next_cursor"]}
    response = await shared.request("reader", "POST", "/v1/search", json=body, headers=BOB)
    assert response.status_code == 422


async def test_the_log_line_of_a_refused_header_has_its_key(
    shared: KeyedClient, log_lines: list[dict[str, Any]]
) -> None:
    """Otherwise one caller that is misconfigured would count as one without a key."""
    refused = await shared.request("reader", "GET", "/v1/collections", headers={"X-Trivium-Usr": "alice"})
    assert refused.status_code == 400
    assert (log_lines[-1]["status"], log_lines[-1]["key"]) == (400, "reader")


async def test_documents_without_a_value_are_for_their_tenant_in_every_filter(shared: KeyedClient) -> None:
    for condition, expected in (
        ({"op": "not", "filter": {"visibility": "tenant"}}, {"private", "team"}),
        ({"op": "not", "filter": {"visibility": ["team", "private"]}}, {"open"}),
        ({"op": "exists", "field": "visibility"}, {"private", "team", "open"}),
        ({"visibility": ["tenant", "team", "private"]}, {"private", "team", "open"}),
    ):
        assert ids(await found(shared, "reader", filter=condition)) == expected


@pytest.mark.parametrize(
    ("user", "teams", "error"),
    [
        (None, [], "teams: [], allowed is a list of names; without a user it has at least one"),
        (None, "legal", "teams: 'legal', allowed is a list of names"),
        ("alice", ["a,b"], "teams: 'a,b', allowed are names"),
        (" alice", None, "user: ' alice', allowed are names"),
        ("", None, "user: '', allowed are names"),
    ],
)
def test_a_client_refuses_what_would_not_narrow_its_requests(user: str | None, teams: Any, error: str) -> None:
    with pytest.raises(ValueError, match=re.escape(error)):
        trivium_client.Client("http://127.0.0.1:1", "key", user=user, teams=teams)


def test_a_client_names_its_user() -> None:
    assert caller_headers(None, "Zoë", ["a", "b"]) == {
        b"x-trivium-user": "Zoë".encode(), b"x-trivium-teams": b"a,b",
    }  # fmt: skip
    assert caller_headers("k", "a", []) == {b"authorization": b"Bearer k", b"x-trivium-user": b"a"}
