from __future__ import annotations

import json
import logging

import anyio
import httpx
import msgspec
import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import AdapterError, Unavailable
from orchestrator.contract import SearchResponse
from orchestrator.outcome import AllSourcesFailed, Failed
from tests.secrets import keep_out

pytestmark = pytest.mark.anyio

DOCUMENTS = [
    {"id": "nolan", "title": "Christopher Nolan", "text": "A film director born in London.", "tags": ["person"]},
    {"id": "prestige", "title": "The Prestige", "text": "A film by Christopher Nolan.", "metadata": {"year": 2006}},
    {"id": "pasta", "title": "Pasta", "text": "Boil water, add salt.", "url": "https://example.org/pasta"},
    {"id": "note", "text": "remember the pasta", "collection": "memory"},
    {"id": "secret", "text": "Christopher Nolan's secret", "sensitivity": "restricted"},
]  # fmt: skip


for _document in DOCUMENTS:
    keep_out(_document["text"])


def ndjson(*documents: object) -> bytes:
    return b"\n".join(json.dumps(document).encode() for document in documents)


async def fill(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/documents", content=ndjson(*DOCUMENTS))).status_code == 200


async def search(client: httpx.AsyncClient, **body: object) -> httpx.Response:
    return await client.post("/v1/search", json={"timeout_ms": 10_000, **body})


def problem(response: httpx.Response, status: int) -> dict[str, object]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    told = response.json()
    assert told["status"] == status
    assert told["title"]
    return told


async def test_documents_in_one_ranking_out(client: httpx.AsyncClient) -> None:
    await fill(client)
    response = await search(client, query="films by Christopher Nolan")
    assert response.status_code == 200
    answer = response.json()
    assert [hit["id"] for hit in answer["hits"]][:2] == ["prestige", "nolan"] or [hit["id"] for hit in answer["hits"]][
        :2
    ] == ["nolan", "prestige"]
    hit = next(hit for hit in answer["hits"] if hit["id"] == "prestige")
    assert hit["metadata"] == {"year": 2006}
    assert set(hit["sources"]) == {"vector", "graph", "keyword"}
    assert all(hit["sources"][source]["rank"] >= 1 for source in hit["sources"])
    assert answer["route"]["sources"] == ["vector", "graph", "keyword"]
    assert (answer["degraded"], answer["cache"], answer["generation"]) == ([], "miss", 1)
    assert msgspec.json.decode(response.content, type=SearchResponse, strict=True)


async def test_what_is_restricted_or_in_memory_is_not_found_unless_allowed_or_named(client: httpx.AsyncClient) -> None:
    await fill(client)
    found = {hit["id"] for hit in (await search(client, query="Christopher Nolan secret pasta")).json()["hits"]}
    assert found == {"nolan", "prestige", "pasta"}
    named = (await search(client, query="pasta", collections=["memory"])).json()
    assert [hit["id"] for hit in named["hits"]] == ["note"]
    problem(await client.get("/v1/documents/secret"), 404)


async def test_filters_over_http(client: httpx.AsyncClient) -> None:
    await fill(client)
    wanted = {"op": "range", "field": "metadata.year", "gte": 2000, "lt": 2010}
    answer = await search(client, query="film", filter=wanted)
    assert [hit["id"] for hit in answer.json()["hits"]] == ["prestige"]


async def test_a_bulk_keeps_the_good_lines_and_names_the_bad(client: httpx.AsyncClient) -> None:
    body = ndjson(DOCUMENTS[0]) + b'\n{broken\n{"id":"x","text":"y","importance":99}\n' + ndjson(DOCUMENTS[2])
    answer = (await client.post("/v1/documents", content=body)).json()
    assert (answer["indexed"], answer["rejected"], answer["generation"]) == (2, 2, 1)
    assert [(line["line"], line["status"], line.get("id")) for line in answer["lines"]] == [
        (1, "indexed", "nolan"), (2, "rejected", None), (3, "rejected", None), (4, "indexed", "pasta"),
    ]  # fmt: skip
    assert "`$.importance`" in answer["lines"][2]["error"]
    assert (await search(client, query="pasta")).json()["hits"][0]["id"] == "pasta"


async def test_one_document_is_read_replaced_and_deleted(client: httpx.AsyncClient) -> None:
    await fill(client)
    assert (await client.get("/v1/documents/pasta")).json() == DOCUMENTS[2]
    changed = {**DOCUMENTS[2], "text": "Never rinse."}
    await client.post("/v1/documents", content=ndjson(changed))
    assert (await client.get("/v1/documents/pasta")).json() == changed
    assert (await client.delete("/v1/documents/pasta")).json() == {"id": "pasta", "deleted": True, "generation": 3}
    problem(await client.get("/v1/documents/pasta"), 404)
    assert (await client.delete("/v1/documents/pasta")).json()["deleted"] is False


@pytest.mark.parametrize("id_", ["a/b", "é", "a b", "100%", "x?y#z"])
async def test_any_id_can_be_asked_for(client: httpx.AsyncClient, id_: str) -> None:
    await client.post("/v1/documents", content=ndjson({"id": id_, "text": "x"}))
    path = "/v1/documents/" + httpx.URL(f"http://x/?{httpx.QueryParams({'q': id_})}").query.decode()[2:].replace(
        "+", "%20"
    )
    assert (await client.get(path)).json()["id"] == id_


async def test_collections_are_counted(client: httpx.AsyncClient) -> None:
    await fill(client)
    assert (await client.get("/v1/collections")).json() == {
        "collections": [{"name": "documents", "documents": 3}, {"name": "memory", "documents": 1}]
    }


async def test_health(client: httpx.AsyncClient) -> None:
    assert (await client.get("/livez")).json() == {"live": True}
    ready = await client.get("/readyz")
    assert ready.json() == {"ready": True, "sources": dict.fromkeys(["vector", "graph", "keyword"], "ok")}


async def test_an_index_that_lacks_documents_is_not_ready(client, app, monkeypatch) -> None:
    await fill(client)
    library = app.state.service.local.library
    monkeypatch.setattr(library, "documents_by_part", lambda: {"vector": 5, "graph": 4, "keyword": 0})
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()["sources"]["keyword"]) == (200, "holds 0 of 5 documents")
    monkeypatch.setattr(library, "documents_by_part", lambda: {"vector": 4, "graph": 4, "keyword": 0})
    assert (await client.get("/readyz")).status_code == 503


async def test_what_a_caller_may_not_see_it_neither_replaces_nor_deletes(client: httpx.AsyncClient, app) -> None:
    await fill(client)
    body = ndjson({"id": "secret", "text": "mine now"}, {"id": "new", "text": "fine"})
    answer = (await client.post("/v1/documents", content=body)).json()
    assert [line["status"] for line in answer["lines"]] == ["rejected", "indexed"]
    assert "above your clearance" in answer["lines"][0]["error"]
    assert (await client.delete("/v1/documents/secret")).json()["deleted"] is False
    service = app.state.service
    held = await service.documents.fetch(service.caller.scope, ["secret"])
    assert held["secret"].document.text == "Christopher Nolan's secret"


async def test_who_goes_away_in_the_middle_of_an_upload_leaves_no_trace(app: FastAPI, caplog) -> None:
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])
    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        return next(messages)

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/documents", "headers": [], "query_string": b"", "app": app}
    await app(scope, receive, send)
    assert sent[0]["status"] == 499
    assert "Traceback" not in caplog.text


async def test_an_empty_service_finds_nothing_and_says_so_calmly(client: httpx.AsyncClient) -> None:
    answer = (await search(client, query="anything")).json()
    assert (answer["hits"], answer["degraded"]) == ([], [])


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"", "not JSON"),
        (b"{", "truncated"),
        (b"\xff", "not JSON"),
        (b'{"query":"x","filter":' + b'{"op":"not","filter":' * 40_000, "nested too deeply"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "missing required field `query`"),
        (b'{"query":"x","colour":1}', "unknown field `colour`"),
        (b'{"query":1}', "Expected `str`, got `int` - at `$.query`"),
        (b'{"query":""}', "length >= 1 - at `$.query`"),
        (b'{"query":"   "}', "nothing but white space"),
        (b'{"query":"' + b"x" * 102_400 + b'"}', "102400 characters, allowed are 1 to 4096"),
        (b'{"query":"x","limit":0}', ">= 1 - at `$.limit`"),
        (b'{"query":"x","limit":1000000000}', "<= 50 - at `$.limit`"),
        (b'{"query":"x","limit":1.5}', "Expected `int`, got `float`"),
        (
            b'{"query":"x","mode":"psychic"}',
            "'psychic' - at `$.mode`, allowed are auto, hybrid, vector, graph, keyword",
        ),
        (b'{"query":"x","vector":[NaN]}', "malformed"),
        (b'{"query":"x","vector":[1e999]}', "out of range"),
        (b'{"query":"x","vector":["a"]}', "Expected `float`, got `str` - at `$.vector[0]`"),
        (b'{"query":"x","vector":[]}', "0 numbers, the documents have 384"),
        (b'{"query":"x","vector":[1,2]}', "2 numbers, the documents have 384"),
        (b'{"query":"\\ud800"}', "not JSON"),
        (b'{"query":"x","weights":{"sonar":1}}', "allowed are vector, graph, keyword"),
        (b'{"query":"x","weights":{"graph":-1}}', ">= 0.0 - at `$.weights[...]`"),
        (b'{"query":"x","fusion":"best"}', "unknown fusion strategy"),
        (b'{"query":"x","filter":{"op":"eq","field":"tenant","value":"t"}}', "unknown field 'tenant'"),
        (b'{"query":"x","filter":{"op":"like"}}', "allowed are eq, in, range, exists, and, or, not"),
        (b'{"query":"x","timeout_ms":0}', ">= 1 - at `$.timeout_ms`"),
        (b'{"query":"x","collections":[]}', "length >= 1 - at `$.collections`"),
    ],
)
async def test_bad_input_is_told_what_is_wrong_and_what_is_allowed(
    client: httpx.AsyncClient, body: bytes, complaint: str
) -> None:
    told = problem(await client.post("/v1/search", content=body), 422)
    assert complaint in str(told["detail"])


async def test_too_large_a_body_is_refused_before_it_is_read(client: httpx.AsyncClient, app: FastAPI) -> None:
    problem(await client.post("/v1/search", content=b"x" * 1_048_577), 413)

    async def endless():
        while True:
            yield b"x" * 65_536

    told = problem(await client.post("/v1/search", content=endless()), 413)
    assert told["detail"] == "the body has more than the 1048576 bytes allowed"


async def test_no_documents_at_all_is_an_error(client: httpx.AsyncClient) -> None:
    problem(await client.post("/v1/documents", content=b"\n \n"), 422)


async def test_paths_and_methods_that_there_are_not(client: httpx.AsyncClient) -> None:
    lost = await client.get("/v2/search", headers={"X-Request-ID": "mine"})
    assert problem(lost, 404)["request_id"] == lost.headers["x-request-id"] == "mine"
    refused = await client.put("/v1/documents/a")
    assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD", "DELETE"}
    refused = await client.get("/v1/search")
    problem(refused, 405)
    assert refused.headers["allow"] == "POST"
    assert (await client.head("/livez")).status_code == 200


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AllSourcesFailed((Failed("vector", "timed out", 1.0), Failed("keyword", "refused", 1.0))), 503),
        (Unavailable("disk on fire"), 503),
        (AdapterError("something"), 503),
        (ZeroDivisionError("password=hunter2"), 500),
    ],
)
async def test_errors_become_problems(client: httpx.AsyncClient, app: FastAPI, monkeypatch, error, status) -> None:
    async def fails(*_: object) -> object:
        raise error

    monkeypatch.setattr(app.state.service.engine, "search", fails)
    response = await search(client, query="x")
    told = problem(response, status)
    assert told["request_id"] == response.headers["x-request-id"]
    assert "hunter2" not in response.text
    assert (response.headers.get("retry-after") == "1") == (status == 503)
    if isinstance(error, AllSourcesFailed):
        assert told["errors"] == ["vector: timed out", "keyword: refused"]


@pytest.mark.parametrize(("given", "kept"), [("my-id_1", True), ("with space", False), ("x" * 129, False)])
async def test_request_ids(client: httpx.AsyncClient, given: str, kept: bool) -> None:
    response = await client.post("/v1/search", json={"query": "x"}, headers={"X-Request-ID": given})
    assert (response.headers["x-request-id"] == given) is kept
    assert response.headers["x-request-id"]


async def test_one_log_line_a_request_with_decisions_and_without_text(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "trivium.access"):
        logging.getLogger("trivium.access").addHandler(caplog.handler)
        await search(client, query="a very private question")
    lines = {record.getMessage() for record in caplog.records if record.name == "trivium.access"}
    (line,) = lines
    told = json.loads(line)
    assert (told["method"], told["path"], told["status"], told["mode"]) == ("POST", "/v1/search", 200, "auto")
    assert set(told["timings_ms"]) >= {"plan", "gather", "fuse", "hydrate"}
    assert "private" not in line


async def test_the_same_request_gives_the_same_bytes_also_after_a_restart(chosen) -> None:
    from orchestrator.api.app import create

    seen = set()
    for _ in range(2):
        made = create(chosen)
        async with (
            made.router.lifespan_context(made),
            httpx.AsyncClient(transport=httpx.ASGITransport(made), base_url="http://localhost") as client,
        ):
            if not seen:
                await fill(client)
            for _ in range(50):
                answer = (await search(client, query="films by Christopher Nolan")).json()
                seen.add(json.dumps(answer["hits"]))
    assert len(seen) == 1


async def test_a_version_that_cannot_be_opened_leaves_what_is_open(client, chosen, monkeypatch) -> None:
    await fill(client)
    told = anyio.Event()
    monkeypatch.setattr(logging.getLogger("orchestrator.api.app"), "exception", lambda _: told.set())
    manifest = chosen.data_dir / "index" / "manifest.json"
    whole = manifest.read_bytes()
    manifest.write_bytes(b"{")
    with anyio.fail_after(10):
        await told.wait()
    assert (await search(client, query="pasta")).json()["hits"][0]["id"] == "pasta"
    manifest.write_bytes(whole)
    await client.post("/v1/documents", content=ndjson({"id": "late", "text": "Zanzibar"}))
    assert (await search(client, query="Zanzibar")).json()["hits"][0]["id"] == "late"


async def test_the_openapi_document_is_that_of_the_types(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == {
        "/v1/search", "/v1/documents", "/v1/documents/{id}", "/v1/collections", "/v1/cache", "/livez", "/readyz",
    }  # fmt: skip
    schemas = document["components"]["schemas"]
    assert schemas["SearchRequest"]["properties"]["limit"]["maximum"] == 50
    assert schemas["SearchRequest"]["additionalProperties"] is False
    assert {"SearchResponse", "Document", "Problem", "And", "Range"} <= set(schemas)
    assert "#/components/schemas/" in json.dumps(document["paths"]["/v1/search"])


@settings(max_examples=150)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=4),
                st.dictionaries(st.sampled_from(["query", "limit", "filter", "op", "field", "vector", "x"]), inner),
            ),
        ).map(lambda value: json.dumps(value).encode()),
    )
)
async def test_no_body_is_answered_with_a_bare_500(client: httpx.AsyncClient, body: bytes) -> None:
    for path in ("/v1/search", "/v1/documents"):
        assert (await client.post(path, content=body)).status_code in {200, 422}
