"""``GET /v1/documents/{id}/neighbors``: what is around a document, as far as the caller may see it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.orchestrator.http.helpers import KeyedClient, index_documents, ndjson, problem

pytestmark = pytest.mark.anyio


def film(id_: str, names: list[str], links: list[dict[str, str]] | None = None, **fields: object) -> dict[str, Any]:
    return {"id": id_, "title": f"The {id_}", "text": "a film", "entities": names, "links": links or [], **fields}


FILMS = [
    film("memento", ["Nolan"], [{"target": "prestige", "type": "followed_by"}]),
    film("prestige", ["Nolan", "Bale"], [{"target": "memento", "type": "part_of"}]),
    film("heat", ["Bale", "Mann"], collection="films"),
    film("list", [], [{"target": "memento", "type": "mentions"}, {"target": "memento", "type": "cites"}]),
    film("secret", ["Nolan"], [{"target": "memento", "type": "knows"}], sensitivity="restricted"),
    film("odd/neighbors", []),
]


async def neighbors(client: httpx.AsyncClient, id_: str, **parameters: Any) -> dict[str, Any]:
    response = await client.get(f"/v1/documents/{id_}/neighbors", params=parameters)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def link_list(body: dict[str, Any]) -> set[tuple[str, str, str]]:
    ids = [each["id"] for each in body["documents"]]
    return {(ids[each["source"]], each["type"], ids[each["target"]]) for each in body["links"]}


def mention_list(body: dict[str, Any]) -> set[tuple[str, str]]:
    ids, names = [each["id"] for each in body["documents"]], [each["name"] for each in body["names"]]
    return {(ids[each["document"]], names[each["name"]]) for each in body["mentions"]}


async def test_links_with_types_and_directions_and_names(app: FastAPI, client: httpx.AsyncClient) -> None:
    await index_documents(app, FILMS)
    body = await neighbors(client, "prestige")
    assert body["documents"][0] == {
        "id": "prestige", "collection": "documents", "title": "The prestige", "sensitivity": "normal",
    }  # fmt: skip
    assert link_list(body) == {("prestige", "part_of", "memento"), ("memento", "followed_by", "prestige")}
    assert {(each["name"], each["documents"]) for each in body["names"]} == {
        ("the prestige", 1), ("bale", 2), ("nolan", 2),
    }  # fmt: skip
    assert {("prestige", "bale"), ("heat", "bale"), ("memento", "nolan")} <= mention_list(body)
    assert body["omitted"] == 0
    incoming = link_list(await neighbors(client, "memento"))
    assert {("list", "mentions", "memento"), ("list", "cites", "memento")} <= incoming
    assert not any("knows" in each for each in incoming)


async def test_the_limit_holds_and_what_it_omits_is_counted(app: FastAPI, client: httpx.AsyncClient) -> None:
    pages = [film(f"p{number}", ["Hub"], [{"target": "hub", "type": "cites"}]) for number in range(60)]
    await index_documents(app, [film("hub", [f"Name{number}" for number in range(50)]), *pages])
    for limit in (2, 3, 10, 40, 200):
        body = await neighbors(client, "hub", limit=limit)
        assert len(body["documents"]) + len(body["names"]) <= limit
        assert body["documents"][0]["id"] == "hub"
        shown = len({each["source"] for each in body["links"]}) + len(body["names"])
        assert shown + body["omitted"] == 60 + 51
    body = await neighbors(client, "hub")
    assert (len(body["documents"]), len(body["names"])) == (1 + 30, 9)
    linked = await neighbors(client, "p1", limit=40)
    assert linked["documents"][1]["id"] == "hub"


@pytest.mark.parametrize(("limit", "reason"), [("1", "1"), ("201", "201"), ("x", "'x'"), ("", "''"), ("-1", "'-1'")])
async def test_a_limit_that_is_not_allowed_is_named(client: httpx.AsyncClient, limit: str, reason: str) -> None:
    await client.post("/v1/documents", content=ndjson(*FILMS[:1]))
    body = problem(await client.get("/v1/documents/memento/neighbors", params={"limit": limit}), 422)
    assert body["detail"] == f"limit: {reason}, allowed are 2 to 200"


async def test_documents_that_do_not_exist_or_are_ambiguous(app: FastAPI, client: httpx.AsyncClient) -> None:
    await index_documents(app, [*FILMS, film("heat", [], collection="more")])
    problem(await client.get("/v1/documents/none/neighbors"), 404)
    problem(await client.get("/v1/documents/secret/neighbors"), 404)
    problem(await client.get("/v1/documents/heat/neighbors"), 409)
    body = await neighbors(client, "heat", collection="films")
    assert mention_list(body) >= {("heat", "bale"), ("prestige", "bale")}
    problem(await client.get("/v1/documents/memento/neighbors", params={"colection": "x"}), 422)


async def test_an_id_may_end_like_the_path(app: FastAPI, client: httpx.AsyncClient) -> None:
    await index_documents(app, FILMS)
    assert (await client.get("/v1/documents/odd%2Fneighbors")).json()["id"] == "odd/neighbors"
    assert (await neighbors(client, "odd%2Fneighbors"))["documents"][0]["id"] == "odd/neighbors"
    problem(await client.get("/v1/documents/odd/neighbors"), 404)
    refused = await client.delete("/v1/documents/odd/neighbors")
    problem(refused, 405)
    assert refused.headers["allow"] == "GET, HEAD"
    assert (await client.delete("/v1/documents/odd%2Fneighbors")).json()["deleted"] is True


async def test_nothing_depends_on_what_the_caller_may_not_see(keyed: KeyedClient) -> None:
    """The same bytes before and after documents of a higher clearance and of another tenant are written."""
    public = [each for each in FILMS if each["id"] != "secret"]
    hidden = [film(f"s{number}", ["Nolan", "Bale"], sensitivity="restricted") for number in range(5)]
    links = [film("spy", [], [{"target": "memento", "type": "knows"}], sensitivity="restricted")]
    paths = [f"/v1/documents/{id_}/neighbors" for id_ in ("memento", "prestige", "heat")]

    async def seen() -> list[bytes]:
        return [(await keyed.request("reader", "GET", path)).content for path in paths]

    await keyed.request("root", "POST", "/v1/documents", content=ndjson(*public))
    before = await seen()
    await keyed.request("root", "POST", "/v1/documents", content=ndjson(*hidden, *links))
    await keyed.request("other", "POST", "/v1/documents", content=ndjson(*FILMS))
    assert await seen() == before
    problem(await keyed.request("reader", "GET", "/v1/documents/spy/neighbors"), 404)
    problem(await keyed.request(None, "GET", paths[0]), 401)
    of_root = (await keyed.request("root", "GET", paths[0])).json()
    assert ("spy", "knows", "memento") in link_list(of_root)
