"""Searches for documents that are like others."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from orchestrator.settings import Settings
from tests.orchestrator.http.helpers import complete_response, hit_ids, index_documents, problem, search

pytestmark = pytest.mark.anyio

DOCUMENTS = [
    {"id": "loaf", "title": "Sourdough", "text": "A loaf of rye bread rises slowly with wild yeast.",
     "links": [{"target": "oven", "type": "needs"}]},
    {"id": "rolls", "text": "Bread rolls with yeast and butter rise in an hour."},
    {"id": "oven", "text": "Heat reaches two hundred degrees.", "entities": []},
    {"id": "comet", "text": "A comet has a tail of dust and gas near the sun."},
    {"id": "asteroid", "text": "An asteroid orbits the sun as a comet does, without a tail."},
    {"id": "secret", "text": "The secret yeast of the bread of the king.", "sensitivity": "restricted"},
    {"id": "book", "text": "All about bread and yeast."},
    {"id": "book-1", "parent_id": "book", "chunk_index": 0, "text": "Bread and yeast, the first chapter."},
    {"id": "book-2", "parent_id": "book", "chunk_index": 1, "text": "Bread and yeast, the second chapter."},
    {"id": "twice", "text": "Yeast makes bread rise.", "collection": "notes"},
    {"id": "twice", "text": "Dust of a comet.", "collection": "mails"},
]  # fmt: skip


@pytest.fixture
def chosen(chosen: Settings, request: pytest.FixtureRequest) -> Settings:
    return chosen.changed(**getattr(request, "param", {}))


@pytest.fixture
async def documents(app: FastAPI) -> None:
    await index_documents(app, DOCUMENTS)


async def alike(client: httpx.AsyncClient, like: dict[str, Any], **body: object) -> dict[str, Any]:
    return await complete_response(client, query="", like=like, **body)


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize("mode", ["auto", "hybrid", "vector", "keyword"])
@pytest.mark.parametrize("profile", ["joint", "rrf", "weighted_rrf"])
async def test_documents_like_another_come_first_and_it_is_none_of_them(
    client: httpx.AsyncClient, mode: str, profile: str
) -> None:
    for example, nearest in (
        ("rolls", {"loaf", "book", "book-1", "book-2", "twice"}),
        ("comet", {"asteroid", "twice"}),
    ):
        found = await alike(client, {"ids": [example]}, mode=mode, profile=profile, collapse="none")
        assert hit_ids(found)[0] in nearest
        assert example not in hit_ids(found)
        assert found["confidence"] is None


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize("profile", ["joint", "rrf"])
async def test_the_graph_starts_from_the_documents(client: httpx.AsyncClient, profile: str) -> None:
    """The oven has no word of the loaf: only a link leads there."""
    assert hit_ids(await alike(client, {"ids": ["loaf"]}, mode="graph", profile=profile))[0] == "oven"
    in_hybrid = {
        hit["id"]: hit for hit in (await alike(client, {"ids": ["loaf"]}, mode="hybrid", profile=profile))["hits"]
    }
    assert in_hybrid["oven"]["sources"]["graph"]["rank"] == 1


@pytest.mark.usefixtures("documents")
async def test_a_text_and_several_documents(client: httpx.AsyncClient) -> None:
    assert hit_ids(await alike(client, {"text": "a tail of dust and gas"}))[0] == "comet"
    both = hit_ids(await alike(client, {"ids": ["rolls", "comet"]}, collapse="none"))
    assert {"asteroid", "loaf"} <= set(both[:6])
    assert not {"rolls", "comet"} & set(both)


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize("example", ["book", "book-1"])
async def test_no_other_part_of_the_same_document_is_a_hit(client: httpx.AsyncClient, example: str) -> None:
    found = hit_ids(await alike(client, {"ids": [example]}, collapse="none"))
    assert found
    assert not {"book", "book-1", "book-2"} & set(found)


@pytest.mark.usefixtures("documents")
async def test_filters_pages_and_facets_are_those_of_a_query(client: httpx.AsyncClient) -> None:
    like = {"ids": ["rolls"]}
    whole = hit_ids(await alike(client, like, collapse="none"))
    first = await alike(client, like, collapse="none", limit=2, facets={"collection": 5})
    second = await alike(client, like, collapse="none", limit=2, cursor=first["next_cursor"])
    assert hit_ids(first) + hit_ids(second) == whole[:4]
    assert sum(each["count"] for each in first["facets"]["collection"]["values"]) == first["total"]["value"]
    assert hit_ids(await alike(client, like, filter={"collection": "notes"})) == ["twice"]


@pytest.mark.usefixtures("documents")
async def test_of_equal_ids_the_collection_decides(client: httpx.AsyncClient) -> None:
    named = [hit_ids(await alike(client, {"ids": ["twice"], "collection": name})) for name in ("notes", "mails")]
    assert [found[0] for found in named][1] in {"comet", "asteroid"}
    assert named[0][0] not in {"comet", "asteroid"}


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize(
    ("like", "body", "expected"),
    [
        ({"ids": ["nothing"]}, {}, "like: there is no document 'nothing'"),
        ({"ids": ["secret"]}, {}, "like: there is no document 'secret'"),
        ({"ids": ["loaf"], "collection": "mails"}, {}, "like: there is no document 'loaf' in 'mails'"),
        ({"ids": ["twice"]}, {}, "like: documents of several collections have the id 'twice': name the collection"),
        ({}, {}, "like: empty, give ids, a text, or both"),
        ({"text": " "}, {}, "like: empty, give ids, a text, or both"),
        ({"text": "x", "collection": "notes"}, {}, "like: a collection is allowed with ids"),
        ({"text": "x" * 5_000}, {}, "like: a text of 5000 characters, allowed are 4096"),
        ({"text": "x"}, {"query": "x"}, "like: allowed if query is empty"),
        ({"text": "x"}, {"sort": "id"}, "sort: allowed if query is empty and there is a filter; other hits are ranked"),
        ({"text": "x"}, {"min_confidence": 0.5}, "min_confidence: allowed with a query;"),
        (
            {"ids": [str(n) for n in range(11)]},
            {},
            'like.ids: ["0","1",',
        ),
        ({"id": ["loaf"]}, {}, "like"),
    ],
)
async def test_what_is_not_allowed(
    client: httpx.AsyncClient, like: dict[str, Any], body: dict[str, Any], expected: str
) -> None:
    response = await search(client, **{"query": "", "like": like, **body})
    assert problem(response, 422)["detail"].startswith(expected)


@pytest.mark.parametrize("chosen", [{"embedder": "none://2"}], indirect=True)
async def test_documents_with_vectors_of_their_own(app: FastAPI, client: httpx.AsyncClient) -> None:
    vectors = {"north": (0.0, 1.0), "almost north": (0.1, 1.0), "east": (1.0, 0.0), "south": (0.0, -1.0)}
    await index_documents(app, [{"id": id_, "text": id_, "vector": vector} for id_, vector in vectors.items()])
    found = await alike(client, {"ids": ["north"]}, mode="vector")
    assert hit_ids(found) == ["almost north", "east", "south"]
    found = await alike(client, {"ids": ["north", "east"]}, mode="vector")
    assert hit_ids(found) == ["almost north", "south"]
