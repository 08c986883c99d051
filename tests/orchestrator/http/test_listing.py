"""Requests without a query list what matches; facets count values. Over HTTP, and their bounds and errors."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from orchestrator.results import response_body
from orchestrator.retrieval import listing
from tests.orchestrator.http.helpers import complete_response, hit_ids, index_documents, problem, search

pytestmark = pytest.mark.anyio

STARS = {"op": "eq", "field": "metadata.kind", "value": "star"}
DOCUMENTS = [
    {"id": "sun", "text": "The sun is a star.", "tags": ["near", "hot"], "created_at": "2024-05-01T00:00:00Z",
     "metadata": {"kind": "star", "mass": 1, "seen": True}},
    {"id": "sirius", "text": "Sirius is a star, too.", "tags": ["hot"], "created_at": "2023-05-01T00:00:00Z",
     "metadata": {"kind": "star", "mass": 2.06, "seen": True}},
    {"id": "proxima", "text": "Proxima is a small star.", "tags": ["near"],
     "metadata": {"kind": "star", "mass": 0.12, "seen": False}},
    {"id": "mars", "text": "Mars is a planet.", "tags": ["near"], "created_at": "2022-01-01T00:00:00Z",
     "metadata": {"kind": "planet"}},
    {"id": "secret", "text": "A secret star.", "sensitivity": "restricted", "tags": ["hidden"],
     "metadata": {"kind": "star", "mass": 50}},
]  # fmt: skip


@pytest.fixture
async def documents(app: FastAPI) -> None:
    await index_documents(app, DOCUMENTS)


async def listed(client: httpx.AsyncClient, **body: object) -> dict[str, Any]:
    return await complete_response(client, **{"query": "", "filter": STARS, **body})


@pytest.mark.usefixtures("documents")
async def test_an_empty_query_lists_what_matches(client: httpx.AsyncClient) -> None:
    found = await listed(client)
    assert hit_ids(found) == ["proxima", "sirius", "sun"]
    assert found["total"] == {"value": 3, "relation": "eq"}
    assert found["route"] == {"sources": [], "reason": "no query: the documents that match the filter are listed"}
    assert (found["encoder"], found["confidence"], found["next_cursor"]) == ("none", None, None)
    first = found["hits"][0]
    assert (first["text"], first["method"], first["found_in"]) == ("Proxima is a small star.", "filter", [])
    assert (first["score"], first["fusion_score"], first["snippet"]) == (0, 0, None)
    assert set(first["sources"].values()) == {None}
    assert "facets" not in found


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("created_at", ["sirius", "sun", "proxima"]),
        ("-created_at", ["sun", "sirius", "proxima"]),
        ("metadata.mass", ["proxima", "sun", "sirius"]),
        ("-metadata.mass", ["sirius", "sun", "proxima"]),
        ("tags", ["sirius", "sun", "proxima"]),
        ("-id", ["sun", "sirius", "proxima"]),
        ("metadata.absent", ["proxima", "sirius", "sun"]),
    ],
)
async def test_a_list_has_the_order_of_a_field(client: httpx.AsyncClient, sort: str, expected: list[str]) -> None:
    assert hit_ids(await listed(client, sort=sort)) == expected
    pages, cursor = [], None
    while len(pages) < 4:
        found = await listed(client, sort=sort, limit=1, **({"cursor": cursor} if cursor else {}))
        assert found["total"]["value"] == 3
        pages += hit_ids(found)
        cursor = found["next_cursor"]
        if cursor is None:
            break
    assert pages == expected


@pytest.mark.usefixtures("documents")
async def test_collections_are_a_filter_too(client: httpx.AsyncClient) -> None:
    found = await listed(client, filter=None, collections=["documents"])
    assert hit_ids(found) == ["mars", "proxima", "sirius", "sun"]
    every = {"op": "and", "filters": []}
    assert hit_ids(await listed(client, filter=every)) == ["mars", "proxima", "sirius", "sun"]


@pytest.mark.usefixtures("documents")
async def test_facets_of_a_list_count_every_document_that_matches(client: httpx.AsyncClient) -> None:
    names = {"tags": 1, "metadata.kind": 5, "metadata.seen": 5, "metadata.mass": 3, "created_at": 4}
    found = await listed(client, limit=1, facets=names)
    facets = found["facets"]
    nothing = {"ranges": [], "others": 0, "max_error": 0}
    assert facets["tags"] == {**nothing, "values": [{"value": "hot", "count": 2}], "others": 2}
    assert facets["metadata.kind"] == {**nothing, "values": [{"value": "star", "count": 3}]}
    seen = [{"value": True, "count": 2}, {"value": False, "count": 1}]
    assert facets["metadata.seen"] == {**nothing, "values": seen}
    masses = [{"gte": 0, "lt": 1, "count": 1}, {"gte": 1, "lt": 2, "count": 1}, {"gte": 2, "lt": 3, "count": 1}]
    assert facets["metadata.mass"] == {**nothing, "values": [], "ranges": masses}
    years = [(each["gte"], each["lt"], each["count"]) for each in facets["created_at"]["ranges"]]
    assert years == [
        ("2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z", 1),
        ("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z", 1),
    ]
    inside = {"op": "range", "field": "created_at", "gte": years[1][0], "lt": years[1][1]}
    assert hit_ids(await listed(client, filter=inside)) == ["sun"]


@pytest.mark.usefixtures("documents")
async def test_facets_of_a_query_count_its_hits(client: httpx.AsyncClient) -> None:
    response = (await search(client, query="star", mode="keyword", limit=1, facets={"tags": 5})).json()
    assert response["total"] == {"value": 3, "relation": "eq"}
    values = {each["value"]: each["count"] for each in response["facets"]["tags"]["values"]}
    assert values == {"hot": 2, "near": 2}
    nothing = (await search(client, query="star", mode="keyword", filter={"tags": "x"}, facets={"tags": 5})).json()
    assert nothing["facets"]["tags"] == {"values": [], "ranges": [], "others": 0, "max_error": 0}


@pytest.mark.usefixtures("documents")
async def test_keys_that_no_document_has_are_named(client: httpx.AsyncClient) -> None:
    found = await listed(client, sort="metadata.mas", facets={"metadata.knd": 3})
    assert found["warnings"] == [
        "no document has the metadata key 'knd'; the nearest is 'kind'",
        "no document has the metadata key 'mas'; the nearest is 'mass'",
    ]


BOTH = {"query": "", "filter": STARS}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"query": ""}, "query: '', allowed are texts of 1 to 4096 characters"),
        ({"query": "", "facets": {"tags": 3}}, "query: '', allowed are texts of 1 to 4096 characters"),
        ({"query": " ", "filter": STARS}, "query: only white space, allowed is text of 1 character and more"),
        ({"query": "x", "sort": "id"}, "sort: allowed if query is empty and there is a filter; other hits are ranked"),
        ({"query": "", "sort": "id"}, "sort: allowed if query is empty and there is a filter; other hits are ranked"),
        ({**BOTH, "mode": "vector"}, "mode: 'vector' searches for a query, which is empty; allowed are auto and"),
        ({**BOTH, "fusion": "rrf"}, "fusion: allowed with a query; without one nothing is ranked"),
        ({**BOTH, "boosts": {"recency": True}}, "boosts: allowed with a query; without one nothing is ranked"),
        ({**BOTH, "min_confidence": 0.5}, "min_confidence: allowed with a query; without one nothing is ranked"),
        ({**BOTH, "rerank": True}, "rerank: allowed with a query; without one nothing is ranked"),
        ({**BOTH, "sort": "create_at"}, "sort: unknown field 'create_at', "),
        ({**BOTH, "sort": "-price"}, "sort: unknown field 'price', "),
        ({**BOTH, "facets": {"tag": 3}}, "facets: unknown field 'tag', "),
        ({**BOTH, "facets": {"tags": 0}}, "facets"),
        ({**BOTH, "facets": {"tags": 101}}, "facets"),
        ({**BOTH, "facets": {f"metadata.k{n}": 3 for n in range(11)}}, "facets"),
        ({**BOTH, "facets": ["tags"]}, "facets"),
        (
            {**BOTH, "facets": {"metadata.\u00e9": 1, "metadata.e\u0301": 3}},
            "facets: 'metadata.e\u0301' and 'metadata.\u00e9' are the same field",
        ),
        ({**BOTH, "facets": {"tenant": 3}}, "facets: unknown field 'tenant', "),
    ],
)  # fmt: skip
async def test_what_does_not_go_together_is_refused(
    client: httpx.AsyncClient, body: dict[str, object], expected: str
) -> None:
    response = await search(client, **body)
    assert problem(response, 422)["detail"].startswith(expected)


@pytest.mark.usefixtures("documents")
async def test_the_end_of_a_long_list_is_said(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (listing, response_body):
        monkeypatch.setattr(module, "MAX_LISTED_HITS", 2)
    first = await listed(client, limit=1)
    assert (first["warnings"], first["total"]["value"]) == ([], 3)
    last = await listed(client, limit=1, cursor=first["next_cursor"])
    assert (hit_ids(last), last["next_cursor"]) == (["sirius"], None)
    assert last["warnings"] == ["1 more documents match, and 2 can be listed: narrow the filter, or export them"]


@pytest.mark.usefixtures("documents")
async def test_a_list_can_be_a_context(client: httpx.AsyncClient) -> None:
    found = await listed(client, format="context", sort="metadata.mass", limit=2)
    assert found["context"]["text"].index("Proxima") < found["context"]["text"].index("The sun")
