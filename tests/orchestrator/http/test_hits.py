"""The fields of hits, and what a request asks of them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from orchestrator.schema.hits import HIT_FIELDS
from orchestrator.settings import Settings
from tests.orchestrator.http.helpers import complete_response, index_documents, problem, search

pytestmark = pytest.mark.anyio

DOCUMENT = {
    "id": "paper", "title": "On stars", "text": "Stars are studied by astronomers. " * 40, "importance": 3,
    "created_at": "2025-12-02T00:00:00Z", "sensitivity": "public", "tags": ["a", "b"], "language": "en",
    "url": "https://example.org/1",
    "metadata": {"heading_path": ["Sky", "Stars"], "artifact_type": "note", "year": 2020},
}  # fmt: skip
PLAIN = {"id": "plain", "text": "stars & planets"}
CHUNKS = [
    {"id": f"book-{n}", "text": f"stars in chapter {n}", "parent_id": "book", "chunk_index": n, "url": "https://b"}
    for n in range(4)
]


@pytest.fixture
def chosen(chosen: Settings, request: pytest.FixtureRequest) -> Settings:
    return chosen.changed(**getattr(request, "param", {}))


@pytest.fixture
async def documents(app: FastAPI) -> None:
    await index_documents(app, [DOCUMENT, PLAIN, *CHUNKS])


async def hits(client: httpx.AsyncClient, query: str = "stars", **body: object) -> dict[str, dict[str, Any]]:
    response = await complete_response(client, query=query, collapse=body.pop("collapse", "none"), **body)
    return {hit["id"]: hit for hit in response["hits"]}


@pytest.mark.usefixtures("documents")
async def test_a_hit_has_the_fields_of_its_document(client: httpx.AsyncClient) -> None:
    found = await hits(client)
    names = ("created_at", "importance", "sensitivity", "tags", "language", "section")
    values = ("2025-12-02T00:00:00Z", 3.0, "public", ["a", "b"], "en", "Stars")
    assert tuple(found["paper"][name] for name in names) == values
    assert tuple(found["plain"][name] for name in names) == (None, None, "normal", [], None, None)


@pytest.mark.usefixtures("documents")
async def test_every_chunk_names_its_neighbours_asked_or_not(client: httpx.AsyncClient) -> None:
    expected = {
        "book-0": ["book-1"],
        "book-1": ["book-0", "book-2"],
        "book-2": ["book-1", "book-3"],
        "book-3": ["book-2"],
    }
    found = await hits(client)
    assert {id_: hit["neighbor_ids"] for id_, hit in found.items() if id_ in expected} == expected
    assert found["plain"]["neighbor_ids"] == []
    assert all("[CHUNK BOUNDARY]" not in hit["text"] for hit in found.values())
    (best,) = (await hits(client, query="stars in chapter 2", limit=1, neighbors=2)).values()
    assert best["neighbor_ids"] == ["book-0", "book-1", "book-3"]


async def test_a_neighbour_that_the_caller_may_not_see_is_not_named(app: FastAPI, client: httpx.AsyncClient) -> None:
    await index_documents(app, [CHUNKS[0], {**CHUNKS[1], "sensitivity": "restricted"}])
    assert (await hits(client))["book-0"]["neighbor_ids"] == []


@pytest.mark.usefixtures("documents")
async def test_a_snippet_has_the_words_of_the_query_marked(client: httpx.AsyncClient) -> None:
    found = await hits(client, query="star")
    assert found["plain"]["snippet"] == "<mark>stars</mark> &amp; planets"
    assert all(hit["snippet"] is None for hit in (await hits(client, highlight=False)).values())


@pytest.mark.usefixtures("documents")
async def test_only_the_fields_that_are_asked_for_are_returned(client: httpx.AsyncClient) -> None:
    found = await hits(client, fields=["title", "score"])
    assert all(set(hit) == {"id", "collection", "title", "score"} for hit in found.values())
    every = await hits(client)
    assert set(HIT_FIELDS) - {"rerank"} == set(every["plain"])
    response = await search(client, query="stars", fields=["titel"])
    assert "fields: 'titel' is not a field of a hit, allowed are id, " in problem(response, 422)["detail"]
    assert problem(response, 422)["detail"].endswith("; the nearest is title")


@pytest.mark.usefixtures("documents")
async def test_texts_are_cut_on_request(client: httpx.AsyncClient) -> None:
    found = await hits(client, text_chars=5)
    assert {hit["text"] for hit in found.values()} == {"Stars", "stars"}
    assert all(hit["span"] == [0, 5] for hit in found.values())
    assert (await hits(client, text_chars=0))["plain"]["text"] == ""


@pytest.mark.usefixtures("documents")
async def test_a_context_has_the_texts_of_the_hits_with_citations(client: httpx.AsyncClient) -> None:
    body = (await search(client, query="stars", collapse="none", format="context")).json()
    context, found = body["context"], body["hits"]
    assert (context["hits"], context["cut"], len(found)) == (6, False, 6)
    cited = dict(enumerate(found, start=1))
    paper = next(number for number, hit in cited.items() if hit["id"] == "paper")
    assert f"[{paper}] On stars > Sky > Stars\nhttps://example.org/1\nStars are studied" in context["text"]
    plain = next(number for number, hit in cited.items() if hit["id"] == "plain")
    assert f"[{plain}] documents/plain\nstars & planets" in context["text"]
    assert all("text" not in hit and "snippet" not in hit and "title" in hit for hit in found)
    assert (await search(client, query="stars", collapse="none", format="context")).json()["cache"] == "l1"
    short = (await search(client, query="stars", format="context", max_tokens=100, fields=["text"])).json()
    assert short["context"]["tokens"] <= 100
    assert short["context"]["cut"]
    assert all(hit["text"] for hit in short["hits"])
    assert "context" not in (await search(client, query="stars")).json()


@pytest.mark.usefixtures("documents")
async def test_texts_are_cut_together_by_tokens(client: httpx.AsyncClient) -> None:
    found = (await hits(client, max_tokens=100)).values()
    cut = [hit for hit in found if hit["id"] == "paper" and len(hit["text"]) < len(DOCUMENT["text"])]
    assert len(cut) == 1
    assert problem(await search(client, query="stars", max_tokens=99), 422)["detail"].startswith("max_tokens: ")
    assert problem(await search(client, query="stars", format="text"), 422)["detail"].startswith("format: ")


@pytest.mark.usefixtures("documents")
async def test_the_log_says_how_many_documents_each_step_had(
    client: httpx.AsyncClient, log_lines: list[dict[str, Any]]
) -> None:
    body = (await search(client, query="stars", mode="hybrid", collapse="window", rerank=True)).json()
    (line,) = log_lines
    assert line["found"]["vector"] == line["found"]["keyword"] == line["candidates"] == 6
    assert (line["collapsed"], line["ranked"], line["hits"]) == (2, 4, 4)  # book-1 is in the windows of 0 and 2
    assert line["windows"] == [hit["window_id"] for hit in body["hits"] if hit["window_id"]]
    assert len(line["windows"]) == 2
    assert line["scores"] == [round(hit["fusion_score"], 4) for hit in body["hits"][:3]]
    outcome = (line["rerank"], line["rerank_reason"])
    assert outcome == ("failed", "no reranker is configured: set TRIVIUM_RERANKER")
    assert "stars" not in str(line)


@pytest.mark.usefixtures("documents")
async def test_a_response_counts_the_hits_of_all_pages(client: httpx.AsyncClient) -> None:
    body = (await search(client, query="stars", limit=2, collapse="none")).json()
    assert (len(body["hits"]), body["total"]) == (2, {"value": 6, "relation": "eq"})
    assert (await search(client, query="stars", mode="keyword", filter={"year": 2020})).json()["total"]["value"] == 1


@pytest.mark.parametrize("chosen", [{"candidates_per_source": 10, "max_limit": 10}], indirect=True)
async def test_a_count_that_may_be_larger_says_so(app: FastAPI, client: httpx.AsyncClient) -> None:
    await index_documents(app, [{"id": f"{n}", "text": "stars"} for n in range(30)])
    total = (await search(client, query="stars", mode="keyword")).json()["total"]
    assert total == {"value": 10, "relation": "gte"}


@pytest.mark.usefixtures("documents")
async def test_one_hit_is_returned_for_each_url(client: httpx.AsyncClient) -> None:
    found = await hits(client, collapse="url", explain=True)
    assert len(found) == 3
    assert {hit["url"] for hit in found.values()} == {"https://b", "https://example.org/1", None}
    body = (await search(client, query="stars", collapse="url", explain=True)).json()
    (best,) = {id_ for id_ in found if id_.startswith("book")}
    assert body["explain"]["removed"]["collapsed"] == {f"book-{n}": best for n in range(4) if f"book-{n}" != best}


@pytest.mark.parametrize("chosen", [{"candidates_per_source": 10, "max_limit": 10}], indirect=True)
async def test_a_url_with_many_documents_leaves_room_for_others(app: FastAPI, client: httpx.AsyncClient) -> None:
    many = [{"id": f"a{n}", "text": "stars stars", "url": "https://a"} for n in range(40)]
    others = [{"id": f"b{n}", "text": "stars and much more of other things", "url": f"https://b/{n}"} for n in range(4)]
    await index_documents(app, [*many, *others])
    assert len(await hits(client, mode="keyword", collapse="url")) == 5


@pytest.mark.usefixtures("documents")
async def test_explain_lists_the_documents_that_were_removed(client: httpx.AsyncClient) -> None:
    body = (await search(client, query="stars", collapse="none", min_score=0.99, explain=True)).json()
    removed = body["explain"]["removed"]
    assert removed["min_score"] == len(removed["documents"]["min_score"]) == 6 - len(body["hits"])
    assert {"id": "plain", "collection": "documents"} in removed["documents"]["min_score"]


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize(
    ("flat", "ids"),
    [
        ({"artifact_type": "note"}, {"paper"}),
        ({"artifact_type": ["note", "other"]}, {"paper"}),
        ({"year": {"gte": 2020, "lt": 2021}}, {"paper"}),
        ({"year": {"gt": 2020}}, set()),
        ({"tags": "a", "language": "en"}, {"paper"}),
        ({"tags": "a", "language": "de"}, set()),
        ({"created_at": {"lt": "2026-01-01"}, "metadata.year": 2020}, {"paper"}),
        ({"op": "not", "filter": {"collection": "documents"}}, set()),
        ({"op": "or", "filters": [{"year": 2020}, {"parent_id": "book", "chunk_index": 1}]}, {"paper", "book-1"}),
        ({"parent_id": "book", "chunk_index": [2, 3]}, {"book-2", "book-3"}),
        ({"sensitivity": "public"}, {"paper"}),
    ],
)  # fmt: skip
async def test_a_filter_may_be_written_as_fields_and_values(
    client: httpx.AsyncClient, flat: dict[str, Any], ids: set[str]
) -> None:
    assert set(await hits(client, filter=flat)) == ids


@pytest.mark.parametrize(
    ("flat", "expected"),
    [
        ({}, "filter: {} has no condition"),
        ({"importance": "high"}, "'high' for 'importance', which has numbers"),
        ({"sensitivity": "norml"}, "the nearest is normal"),
        ({"year": {"from": 2020}}, "filter.year: unknown bound 'from', allowed are gt, gte, lt, lte"),
        ({"year": {}}, "has no bound"),
        ({"year": None}, "filter.year: null, allowed are"),
        ({"year": 2020, "kind": [None]}, "filter.kind[0]: null, allowed are"),
        ({"kind": "a", "year": {"gte": "soon"}}, "filter.year.gte: 'soon', allowed are"),
    ],
)
async def test_a_flat_filter_that_is_not_allowed_says_what_is(
    client: httpx.AsyncClient, flat: dict[str, Any], expected: str
) -> None:
    assert expected in problem(await search(client, query="x", filter=flat), 422)["detail"]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [({"default_limit": 3}, 3), ({"max_limit": 2}, 2), ({"default_limit": 20, "max_limit": 5}, 5)],
    indirect=["chosen"],
)
@pytest.mark.usefixtures("documents")
async def test_the_default_limit_is_a_setting(client: httpx.AsyncClient, expected: int) -> None:
    assert len(await hits(client)) == expected
