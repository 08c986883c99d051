"""Both clients against the service as a process."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import anyio
import msgspec
import numpy as np
import pytest

from orchestrator.client import (
    AsyncClient,
    Client,
    Conflict,
    Document,
    InvalidRequest,
    NotFound,
    Retries,
    SearchRequest,
    indexing,
)
from tests.orchestrator.http.test_metrics import eventually
from tests.orchestrator.served import Serve, environment
from tests.servers.start import free_port

FILMS = [
    {"id": "prestige", "title": "The Prestige", "text": "A film by Christopher Nolan.", "tags": ["film"]},
    {"id": "nolan", "title": "Christopher Nolan", "text": "A director of films.", "collection": "people"},
    {"id": "nolan", "title": "Nolan, Ireland", "text": "A town.", "collection": "places"},
    {"id": "a/b c?", "title": "Slash", "text": "An id with other letters."},
]


@pytest.fixture(scope="module")
def url(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data_dir = tmp_path_factory.mktemp("client")
    with serve(environment(data_dir=data_dir, source_timeout_ms=10_000)) as (_, address):
        yield address


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[Client]:
    with Client(url, timeout_s=30.0) as opened:
        opened.index(FILMS)
        yield opened


def test_documents_are_written_searched_read_listed_and_deleted(client: Client) -> None:
    outcome = client.index([Document(id="new", text="Quicksilver flows.")])
    assert (outcome.indexed, outcome.lines) == (1, [])
    response = client.search("quicksilver", mode="keyword", min_generation=outcome.generation)
    assert [hit.id for hit in response.hits] == ["new"]
    assert client.get("new").text == "Quicksilver flows."
    assert "new" in [each.id for each in client.documents(filter={"id": "new"})]
    assert client.delete("new").deleted is True
    with pytest.raises(NotFound, match="no document 'new'"):
        client.get("new")


def test_any_id_can_be_read(client: Client) -> None:
    assert client.get("a/b c?").title == "Slash"


def test_an_id_of_several_collections_is_a_conflict_until_one_is_named(client: Client) -> None:
    with pytest.raises(Conflict, match="several documents have the id 'nolan'"):
        client.get("nolan")
    assert client.get("nolan", collection="places").title == "Nolan, Ireland"
    assert {each.name: each.documents for each in client.collections()}["people"] == 1
    around = client.neighbors("nolan", collection="people", limit=2)
    assert (around.documents[0].collection, len(around.documents) + len(around.names)) == ("people", 2)


def test_a_request_may_be_a_struct_and_its_fields_may_be_replaced(client: Client) -> None:
    request = SearchRequest(query="nolan", mode="keyword", limit=1)
    assert len(client.search(request).hits) == 1
    assert len(client.search(request, limit=3).hits) == 3
    explained = client.explain(request)
    assert explained.explain


def test_a_value_that_is_not_allowed_is_named(client: Client) -> None:
    with pytest.raises(InvalidRequest, match="limit: 0, allowed are 1 to 50"):
        client.search("x", limit=0)
    with pytest.raises(InvalidRequest, match="unknown field 'limits'"):
        client.search("x", limits=1)


def test_pages_end_where_the_results_end(client: Client) -> None:
    client.index({"id": f"p{number}", "text": "pagination"} for number in range(25))
    pages = list(client.pages("pagination", mode="keyword", limit=10))
    assert [len(page.hits) for page in pages] == [10, 10, 5]
    assert len({hit.id for page in pages for hit in page.hits}) == 25


def test_many_documents_are_sent_in_several_requests_and_rejected_ones_keep_their_number(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "MAX_LINES", 10)
    progress: list[int] = []
    documents = [{"id": f"m{number}", "text": "many"} if number != 13 else {"id": ""} for number in range(25)]
    outcome = client.index(documents, on_progress=progress.append)
    assert (outcome.indexed, outcome.rejected, progress) == (24, 1, [10, 10, 5])
    assert [(each.line, each.status) for each in outcome.lines] == [(14, "rejected")]
    assert client.delete_many({"id": [f"m{number}" for number in range(25)]}, dry_run=True).matched == 24
    with pytest.raises(ValueError, match="do not fit in one request"):
        client.index(documents, replace_chunks=True)
    assert client.delete_many({"id": [f"m{number}" for number in range(25)]}).deleted == 24


def test_the_chunks_of_a_document_are_replaced(client: Client) -> None:
    chunks = [{"id": f"c{n}", "parent_id": "c", "chunk_index": n, "text": f"chunk {n}"} for n in range(3)]
    client.index(chunks, replace_chunks=True)
    assert client.index(chunks[:1], replace_chunks=True).deleted == 2
    assert client.delete("c0", with_chunks=False).chunks == 0


def test_the_service_splits_long_documents(client: Client) -> None:
    assert client.index([{"id": "long", "text": "Some words of a text. " * 200}], chunk=True).indexed > 5
    assert client.get("long#:0").parent_id == "long"
    assert client.index([{"id": "long", "text": "short"}], chunk=True).deleted > 4


def test_the_asynchronous_client_has_the_same_methods_and_answers(url: str, client: Client) -> None:
    async def run() -> None:
        async with AsyncClient(url, timeout_s=30.0) as other:
            outcome = await other.index([{"id": "async", "text": "Asynchronous zebras."}])
            response = await other.search("zebras", mode="keyword", min_generation=outcome.generation)
            assert [hit.id for hit in response.hits] == ["async"]
            assert (await other.get("async")).text == "Asynchronous zebras."
            assert [each.id async for each in other.documents(filter={"id": "async"})] == ["async"]
            pages = [page async for page in other.pages("zebras", mode="keyword", limit=1)]
            assert [len(page.hits) for page in pages] == [1]
            assert (await other.explain("zebras")).explain
            assert [each.name for each in await other.collections()] == [each.name for each in client.collections()]
            assert (await other.delete("async")).deleted is True
            assert (await other.delete_many({"id": "async"})).matched == 0

    anyio.run(run)
    public = {name for name in dir(Client) if not name.startswith("_")}
    assert public == {name for name in dir(AsyncClient) if not name.startswith("_")}


def test_a_service_that_is_restarted_loses_and_doubles_nothing(serve: Serve, tmp_path: Path) -> None:
    """Documents are written one by one while the service is stopped and started again."""
    env, port = environment(data_dir=tmp_path, source_timeout_ms=10_000), free_port()
    patient = Retries(attempts=10, first_delay_s=0.05, ratio=10.0)
    written: list[int] = []
    with Client(f"http://127.0.0.1:{port}", timeout_s=120.0, retries=patient) as client, ThreadPoolExecutor(1) as pool:
        with serve(env, port=port):
            writing = pool.submit(_write, client, written, stop := threading.Event())
            eventually(lambda: len(written) >= 5, 60.0)
        with serve(env, port=port):
            before = len(written)
            eventually(lambda: len(written) >= before + 5, 60.0)
            stop.set()
            writing.result(60)
            found = [each.id for each in client.documents()]
    assert sorted(found) == sorted(f"w{number}" for number in written)
    assert len(found) == len(set(found)) >= 10


def _write(client: Client, written: list[int], stop: threading.Event) -> None:
    for number in count():
        if stop.is_set():
            return
        assert client.index([{"id": f"w{number}", "text": "Written while it restarts."}]).indexed == 1
        written.append(number)


def test_importing_the_client_imports_no_engine_and_is_fast(python: str) -> None:
    def imported(module: str) -> tuple[float, set[str]]:
        code = f"from time import perf_counter as t; s = t(); import {module}, sys; print(t() - s, *sys.modules)"
        took = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.split()
        return float(took[0]), set(took[1:])

    client, service = (
        [imported(module) for _ in range(5)] for module in ("orchestrator.client", "orchestrator.http.app")
    )
    engines = {
        "faiss",
        "tantivy",
        "onnxruntime",
        "tokenizers",
        "fastapi",
        "scipy",
        "networkx",
        "qdrant_client",
        "neo4j",
    }
    assert (engines | {"numpy", "fusion.columns"}).isdisjoint(client[0][1])
    assert min(seconds for seconds, _ in client) < 0.3 * min(seconds for seconds, _ in service)


def test_hits_may_have_some_of_their_fields_only(client: Client) -> None:
    context = client.search("nolan", format="context", limit=1)
    assert context.context
    assert context.context.text.startswith("[1] ")
    (answered,) = client.search_batch([{"query": "nolan", "format": "context", "limit": 1}])
    assert answered.response
    assert answered.response.context == context.context
    response = client.search("nolan", fields=["title"], limit=1)
    (hit,) = response.hits
    assert hit.id
    assert hit.title
    assert hit.text is msgspec.UNSET
    assert client.search(SearchRequest(query="nolan", fields=("title",), limit=1)).hits == response.hits


def test_vectors_may_be_arrays(client: Client) -> None:
    vector = np.zeros(384, np.float32)
    vector[7] = 1
    assert client.index([{"id": "array", "text": "An array.", "vector": vector}]).indexed == 1
    assert client.get("array").vector == tuple(vector.tolist())
    assert client.search("x", mode="vector", vector=vector, limit=1).hits[0].id == "array"
    lines = client.search_batch([{"query": "x", "mode": "vector", "vector": vector}])
    assert [line.response.hits[0].id for line in lines] == ["array"]
    client.delete("array")
