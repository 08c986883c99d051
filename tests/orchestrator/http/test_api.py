"""The whole service over HTTP: documents in, one ranking out."""

from __future__ import annotations

import json
import logging
import sys

import anyio
import httpx
import msgspec
import pytest
from fastapi import FastAPI

from fusion.columns import Documents
from orchestrator.http.app import create_app
from orchestrator.http.byte_budget import ByteBudget, ByteBudgets
from orchestrator.schema.search import SearchResponse
from orchestrator.settings import Settings
from tests.orchestrator.http.helpers import DOCUMENTS, index_documents, ndjson, problem, search

pytestmark = pytest.mark.anyio


async def test_indexed_documents_are_returned_in_one_ranking(app: FastAPI, client: httpx.AsyncClient) -> None:
    await index_documents(app)
    response = await search(client, query="films by Christopher Nolan")
    assert response.status_code == 200
    body = response.json()
    assert {hit["id"] for hit in body["hits"][:2]} == {"prestige", "nolan"}
    hit = next(hit for hit in body["hits"] if hit["id"] == "prestige")
    assert hit["metadata"] == {"year": 2006}
    assert set(hit["sources"]) == {"vector", "graph", "keyword"}
    assert all(hit["sources"][source]["rank"] >= 1 for source in hit["sources"])
    assert body["route"]["sources"] == ["vector", "graph", "keyword"]
    assert (body["degraded"], body["cache"], body["generation"]) == ([], "miss", 1)
    assert msgspec.json.decode(response.content, type=SearchResponse, strict=True)


async def test_restricted_documents_are_not_found_and_memory_only_by_name(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    await index_documents(app)
    found = {hit["id"] for hit in (await search(client, query="Christopher Nolan secret pasta")).json()["hits"]}
    assert found == {"nolan", "prestige", "pasta"}
    named = (await search(client, query="pasta", collections=["memory"])).json()
    assert [hit["id"] for hit in named["hits"]] == ["note"]
    problem(await client.get("/v1/documents/secret"), 404)


async def test_filters_over_http(app: FastAPI, client: httpx.AsyncClient) -> None:
    await index_documents(app)
    condition = {"op": "range", "field": "metadata.year", "gte": 2000, "lt": 2010}
    response = await search(client, query="film", filter=condition)
    assert [hit["id"] for hit in response.json()["hits"]] == ["prestige"]


async def test_a_bulk_request_stores_valid_lines_and_reports_invalid_ones(client: httpx.AsyncClient) -> None:
    body = ndjson(DOCUMENTS[0]) + b'\n{broken\n{"id":"x","text":"y","importance":99}\n' + ndjson(DOCUMENTS[2])
    outcome = (await client.post("/v1/documents", content=body)).json()
    assert (outcome["indexed"], outcome["rejected"], outcome["generation"]) == (2, 2, 1)
    assert [(line["line"], line["status"], line.get("id")) for line in outcome["lines"]] == [
        (1, "indexed", "nolan"), (2, "rejected", None), (3, "rejected", None), (4, "indexed", "pasta"),
    ]  # fmt: skip
    assert "importance: 99, allowed are 0 to 10" in outcome["lines"][2]["error"]
    assert (await search(client, query="pasta")).json()["hits"][0]["id"] == "pasta"


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**70), 10**400])
async def test_a_filter_may_have_a_whole_number_of_any_size(client: httpx.AsyncClient, number: int) -> None:
    for condition in (
        {"op": "eq", "field": "metadata.n", "value": number},
        {"op": "range", "field": "importance", "lt": number},
    ):
        response = await client.post("/v1/search", json={"query": "x", "filter": condition, "timeout_ms": 20_000})
        assert response.status_code == 200, response.text


async def test_documents_are_deleted_by_a_filter_and_by_collection(client: httpx.AsyncClient) -> None:
    lines = [{"id": str(n), "text": "x", "collection": "notes", "created_at": f"2026-01-{n + 1:02}"} for n in range(5)]
    await client.post("/v1/documents", content="\n".join(map(json.dumps, lines)))
    body = {"filter": {"op": "range", "field": "created_at", "gte": "2026-01-04"}}
    dry = (await client.request("DELETE", "/v1/documents", params={"dry_run": "true"}, json=body)).json()
    assert (dry["matched"], dry["deleted"]) == (2, 0)
    done = (await client.request("DELETE", "/v1/documents", json=body)).json()
    assert (done["matched"], done["deleted"]) == (2, 2)
    assert (await client.get("/v1/documents/0", params={"collection": "notes"})).json()["id"] == "0"
    assert (await client.request("DELETE", "/v1/collections/notes")).json()["deleted"] == 3
    assert (await client.get("/v1/documents/0", params={"collection": "notes"})).status_code == 404


async def test_documents_are_listed_page_by_page(app: FastAPI, client: httpx.AsyncClient) -> None:
    await index_documents(app)
    listed: list[str] = []
    path = "/v1/documents?limit=2"
    while path:
        response = await client.get(path)
        listed += [document["id"] for document in response.json()["documents"]]
        assert ("next" in response.links) == ("next_cursor" in response.json())
        path = response.links.get("next", {}).get("url", "")
    assert sorted(listed) == ["nolan", "note", "pasta", "prestige"]
    assert (await client.head("/v1/documents")).status_code == 200


async def test_a_list_of_documents_can_be_indexed_again(app: FastAPI, client: httpx.AsyncClient) -> None:
    await index_documents(app)
    condition = json.dumps({"op": "eq", "field": "tags", "value": "person"})
    listed = await client.get("/v1/documents", params={"filter": condition}, headers={"accept": "application/x-ndjson"})
    assert listed.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in listed.content.splitlines()] == DOCUMENTS[:1]
    assert (await client.post("/v1/documents", content=listed.content)).json()["indexed"] == 1
    of_memory = await client.get("/v1/documents", params={"collection": "memory"})
    assert of_memory.json() == {"documents": [DOCUMENTS[3]]}


@pytest.mark.parametrize(
    ("parameters", "detail"),
    [
        ("limit=0", "limit: 0, allowed are 1 to 1000"),
        ("limit=1001", "limit: 1001, allowed are 1 to 1000"),
        ("limit=ten", "limit: 'ten', allowed are 1 to 1000"),
        ("limit=-1", "limit: '-1', allowed are 1 to 1000"),
        ("limit=1&limit=2", "parameter 'limit' is given 2 times, allowed is once"),
        ("limt=1", "unknown parameter 'limt', allowed are collection, cursor, filter, limit; the nearest is limit"),
        ("collection=", "collection: empty"),
        ("cursor=%C3%A9", "cursor: not a cursor of this service"),
        ("cursor=_w==", "cursor: not a cursor of this service"),
        ("filter=person", "filter: 'person' is not JSON"),
        ("filter={}", "filter: {} has no condition"),
        ('filter={"op":"eq","field":"tenant","value":"x"}', "unknown field 'tenant'"),
    ],
)
async def test_a_list_that_is_not_allowed_says_what_is(client: httpx.AsyncClient, parameters: str, detail: str) -> None:
    response = await client.get(f"/v1/documents?{parameters}")
    assert detail in problem(response, 422)["detail"]


async def test_the_chunks_of_a_document_are_replaced(client: httpx.AsyncClient) -> None:
    chunks = [{"id": f"p-{n}", "text": "x", "parent_id": "p", "chunk_index": n} for n in range(4)]
    await client.post("/v1/documents", content=ndjson(*chunks))
    outcome = await client.post("/v1/documents?replace=children", content=ndjson(*chunks[:2]))
    assert (outcome.json()["indexed"], outcome.json()["deleted"]) == (2, 2)
    assert len((await client.get("/v1/documents")).json()["documents"]) == 2
    refused = await client.post("/v1/documents?replace=childs", content=ndjson(*chunks))
    assert "replace: 'childs', allowed are children; the nearest is children" in problem(refused, 422)["detail"]


async def test_a_long_document_is_split_into_chunks_that_are_found(client: httpx.AsyncClient) -> None:
    filler = "Nothing of interest happens in this part of the text. " * 30
    text = f"# Cooking\n\n{filler}\n\n## Salt\n\nA pinch of saffron colours the rice.\n\n## End\n\n{filler}"
    outcome = await client.post(
        "/v1/documents?chunk=true", content=ndjson({"id": "book", "title": "Food", "text": text})
    )
    chunks = [line["id"] for line in outcome.json()["lines"]]
    assert chunks[:2] == ["book", "book#cooking:0"]
    assert "book#cooking/salt:0" in chunks
    (hit, *_) = (await search(client, query="saffron rice")).json()["hits"]
    assert (hit["id"], hit["parent_id"]) == ("book#cooking/salt:0", "book")
    assert hit["heading_path"] == ["Cooking", "Salt"]
    assert text[slice(*hit["source_span"])] == hit["text"]
    again = await client.post("/v1/documents?chunk=true", content=ndjson({"id": "book", "text": "short"}))
    assert (again.json()["indexed"], again.json()["deleted"]) == (1, len(chunks) - 1)


@pytest.mark.parametrize(
    ("parameters", "detail"),
    [
        ("chunk=yes", "chunk: 'yes', allowed are"),
        ("chunk=true&replace=children", "replace: not allowed with chunk=true"),
    ],
)
async def test_chunks_that_cannot_be_made_are_refused(client: httpx.AsyncClient, parameters: str, detail: str) -> None:
    refused = await client.post(f"/v1/documents?{parameters}", content=ndjson(*DOCUMENTS))
    assert detail in problem(refused, 422)["detail"]


async def test_a_search_shows_the_write_that_it_names_or_says_that_it_does_not(client: httpx.AsyncClient) -> None:
    generation = (await client.post("/v1/documents", content=ndjson(*DOCUMENTS))).json()["generation"]
    shown = (await search(client, query="pasta", min_generation=generation)).json()
    assert (shown["generation"], shown["degraded"], shown["cache"]) == (generation, [], "miss")
    missed = (await search(client, query="pasta", min_generation=generation + 1, timeout_ms=200)).json()
    assert [each["source"] for each in missed["degraded"]] == ["snapshot"]
    assert "generation 2 is not in every source after 100 ms" in missed["degraded"][0]["reason"]
    again = (await search(client, query="pasta", min_generation=generation)).json()
    assert (again["cache"], again["degraded"]) == ("l1", [])


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        ("/v1/documents", {}, "filter: missing, it is required"),
        ("/v1/documents", {"filter": {"op": "eq", "field": "tenant", "value": "x"}}, "unknown field 'tenant'"),
        ("/v1/documents", {"filtre": {}}, "allowed are filter; the nearest is filter"),
        ("/v1/documents?dry_run=yes", {"filter": {"op": "and"}}, "dry_run: 'yes', allowed are true, false"),
        ("/v1/documents?dryrun=true", {"filter": {"op": "and"}}, "unknown parameter 'dryrun', allowed are dry_run"),
        ("/v1/documents/a?colection=x", None, "unknown parameter 'colection', allowed are children, collection"),
        ("/v1/documents/a?collection=", None, "collection: empty"),
    ],
)
async def test_a_delete_that_is_not_allowed_says_what_is(
    client: httpx.AsyncClient, path: str, body: object, detail: str
) -> None:
    response = await client.request("DELETE", path, json=body)
    assert response.status_code == 422
    assert detail in response.json()["detail"]


async def test_an_id_of_several_collections_is_a_conflict(client: httpx.AsyncClient) -> None:
    lines = [{"id": "twice", "text": "x", "collection": name} for name in ("a", "b")]
    await client.post("/v1/documents", content="\n".join(map(json.dumps, lines)))
    for method in ("GET", "DELETE"):
        response = await client.request(method, "/v1/documents/twice")
        assert response.status_code == 409
        assert "name a collection, one of a, b" in response.json()["detail"]


async def test_a_document_is_read_replaced_and_deleted(app: FastAPI, client: httpx.AsyncClient) -> None:
    await index_documents(app)
    assert (await client.get("/v1/documents/pasta")).json() == DOCUMENTS[2]
    changed = {**DOCUMENTS[2], "text": "Never rinse."}
    await client.post("/v1/documents", content=ndjson(changed))
    assert (await client.get("/v1/documents/pasta")).json() == changed
    assert (await client.delete("/v1/documents/pasta")).json() == {"id": "pasta", "deleted": True, "generation": 3}
    problem(await client.get("/v1/documents/pasta"), 404)
    assert (await client.delete("/v1/documents/pasta")).json()["deleted"] is False


@pytest.mark.parametrize("id_", ["a/b", "é", "a b", "100%", "x?y#z"])
async def test_a_document_with_any_id_can_be_read(client: httpx.AsyncClient, id_: str) -> None:
    await client.post("/v1/documents", content=ndjson({"id": id_, "text": "x"}))
    path = "/v1/documents/" + httpx.URL(f"http://x/?{httpx.QueryParams({'q': id_})}").query.decode()[2:].replace(
        "+", "%20"
    )
    assert (await client.get(path)).json()["id"] == id_


async def test_collections_are_counted(app: FastAPI, client: httpx.AsyncClient) -> None:
    await index_documents(app)
    assert (await client.get("/v1/collections")).json() == {
        "collections": [{"name": "documents", "documents": 3}, {"name": "memory", "documents": 1}]
    }


async def test_health(client: httpx.AsyncClient) -> None:
    assert (await client.get("/livez")).json() == {"live": True}
    ready = await client.get("/readyz")
    assert ready.json() == {"ready": True, "sources": dict.fromkeys(["vector", "graph", "keyword"], "ok")}


async def test_a_service_whose_indexes_all_lack_documents_is_not_ready(
    client: httpx.AsyncClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    await index_documents(app)
    embedded = app.state.service.health.embedded
    monkeypatch.setattr(embedded, "documents_by_source", lambda: {"vector": 5, "graph": 4, "keyword": 0})
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()["sources"]["keyword"]) == (200, "has 0 of 5 documents")
    monkeypatch.setattr(embedded, "documents_by_source", lambda: {"vector": 4, "graph": 4, "keyword": 0})
    assert (await client.get("/readyz")).status_code == 503


async def test_a_body_of_lines_that_are_no_documents_costs_little(client: httpx.AsyncClient) -> None:
    too_many = await client.post("/v1/documents", content=(b"x" * 30 + b"\n") * 100_001)  # counted in three slices
    assert (too_many.status_code, too_many.json()["detail"]) == (
        422,
        "the body has 100001 lines, allowed are 100000: send several requests",
    )
    allowed = await client.post("/v1/documents", content=b"x\n" * 100_000)
    assert len(allowed.content) < 200_000
    outcome = allowed.json()
    assert (outcome["rejected"], len(outcome["lines"]), outcome["unlisted"]) == (100_000, 1_000, 99_000)


async def test_documents_that_do_not_fit_beside_others_are_refused(app: FastAPI, client: httpx.AsyncClient) -> None:
    app.state.byte_budgets = ByteBudgets(uploads=ByteBudget(500_000, "documents that wait to be written"))
    line = ndjson({"id": "a", "text": "x" * 1_000}) + b"\n"
    refused = await client.post("/v1/documents", content=line * 300)
    assert "have too many bytes" in problem(refused, 503)["detail"]
    assert refused.headers["retry-after"] == "1"
    for _ in range(3):
        assert (await client.post("/v1/documents", content=line * 200)).json()["indexed"] == 200


async def test_a_body_in_a_file_is_read_like_one_in_memory(client: httpx.AsyncClient) -> None:
    vector = [0.5] * 384  # encoding a megabyte takes long
    documents = [{"id": str(number), "text": f"text {number} " * 900, "vector": vector} for number in range(120)]
    body = ndjson(*documents[:60], "no document", *documents[60:])
    assert len(body) > 2 * 262_144
    outcome = (await client.post("/v1/documents", content=body)).json()
    assert (outcome["indexed"], outcome["rejected"]) == (120, 1)
    assert [line["line"] for line in outcome["lines"]] == list(range(1, 122))
    assert outcome["lines"][60]["status"] == "rejected"
    assert (await client.get("/v1/documents/119")).json()["text"] == documents[119]["text"]


async def test_a_document_above_the_clearance_is_neither_replaced_nor_deleted(
    client: httpx.AsyncClient, app: FastAPI
) -> None:
    await index_documents(app)
    body = ndjson({"id": "secret", "text": "mine now"}, {"id": "new", "text": "fine"})
    outcome = (await client.post("/v1/documents", content=body)).json()
    assert [line["status"] for line in outcome["lines"]] == ["rejected", "indexed"]
    assert "a document that you may not see" in outcome["lines"][0]["error"]
    assert (await client.delete("/v1/documents/secret")).json()["deleted"] is False
    service = app.state.service
    stored = await service.documents.documents.fetch(service.anonymous.scope, Documents.of_ids(["secret"]))
    assert stored["secret"].document.text == "Christopher Nolan's secret"


async def test_an_empty_service_finds_nothing_and_is_not_degraded(client: httpx.AsyncClient) -> None:
    for options in ({}, {"explain": True}, {"mode": "keyword", "explain": True}):
        body = (await search(client, query="anything", **options)).json()
        assert (body["hits"], body["degraded"]) == ([], [])


async def test_the_same_request_gives_the_same_bytes_also_after_a_restart(chosen: Settings) -> None:
    seen: set[str] = set()
    for _ in range(2):
        app = create_app(chosen)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
        ):
            if not seen:
                await index_documents(app)
            for _ in range(50):
                body = (await search(client, query="films by Christopher Nolan")).json()
                seen.add(json.dumps(body["hits"]))
    assert len(seen) == 1


async def test_a_commit_that_cannot_be_opened_leaves_the_open_one_in_use(
    app: FastAPI, client: httpx.AsyncClient, chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await index_documents(app)
    is_logged = anyio.Event()
    monkeypatch.setattr(logging.getLogger("orchestrator.bootstrap.background"), "exception", lambda *_: is_logged.set())
    manifest = chosen.storage.data_dir / "index" / "manifest.json"
    content = manifest.read_bytes()
    manifest.write_bytes(b"{")
    with anyio.fail_after(10):
        await is_logged.wait()
    assert (await search(client, query="pasta")).json()["hits"][0]["id"] == "pasta"
    manifest.write_bytes(content)
    await client.post("/v1/documents", content=ndjson({"id": "late", "text": "Zanzibar"}))
    assert (await search(client, query="Zanzibar")).json()["hits"][0]["id"] == "late"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            b'[{"id": "a", "text": "b"}]',
            "the body is a JSON array; write one document on each line: `jq -c '.[]' FILE`",
        ),
        (b'{\n  "id": "a",\n  "text": "b"\n}', "the body is JSON over several lines; write each document on one line"),
        (b"\x1f\x8b\x08\x00abc", "the body is compressed: `gunzip -c FILE`; allowed is NDJSON"),
    ],
)
async def test_a_body_without_documents_says_what_it_is(client: httpx.AsyncClient, body: bytes, reason: str) -> None:
    outcome = (await client.post("/v1/documents", content=body)).json()
    assert outcome["indexed"] == 0
    assert reason in outcome["lines"][0]["error"]
    assert all("the body is" not in line["error"] for line in outcome["lines"][1:])


async def test_the_openapi_document_describes_every_path_and_type(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == {
        "/v1/search", "/v1/search/batch", "/v1/documents", "/v1/documents/{id}", "/v1/documents/{id}/neighbors",
        "/v1/collections", "/v1/collections/{id}", "/v1/feedback", "/v1/status", "/v1/cache", "/metrics", "/livez",
        "/readyz", "/openapi.json",
    }  # fmt: skip
    schemas = document["components"]["schemas"]
    assert schemas["SearchRequest"]["properties"]["limit"]["anyOf"][0]["maximum"] == 50
    assert schemas["SearchRequest"]["additionalProperties"] is False
    assert {"SearchResponse", "Document", "Problem", "And", "Range"} <= set(schemas)
    assert "#/components/schemas/" in json.dumps(document["paths"]["/v1/search"])


async def test_a_damaged_document_is_no_fault_of_the_caller(
    app: FastAPI, client: httpx.AsyncClient, chosen: Settings
) -> None:
    await index_documents(app)
    records = max((chosen.storage.data_dir / "index").glob("segments/*/records.bin"))
    content = records.read_bytes()
    with records.open("r+b") as file:  # in place: it is mapped
        file.write(content.replace(b'"pasta"', b'"Pasta"'))
    response = await client.get("/v1/documents/pasta")
    assert response.status_code == 503
    assert "trivium rebuild" in response.json()["detail"]
    assert str(chosen.storage.data_dir) not in response.text
    found = await search(client, query="pasta")
    assert found.status_code == 503 or "pasta" not in [hit["id"] for hit in found.json()["hits"]]


async def test_threads_return_the_interpreter_soon_while_the_service_runs(chosen: Settings) -> None:
    """The event loop waits for it each time a search returns from a library that released it."""
    before = sys.getswitchinterval()
    app = create_app(chosen)
    async with app.router.lifespan_context(app):
        assert sys.getswitchinterval() < 0.001
    assert sys.getswitchinterval() == before
