"""Searches that reach a busy server together: each has the result that it has alone, or an error of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest

from adapters import Link, Rejected, Scope, Viewer
from adapters.graph.batched_reads import BatchedReads
from adapters.graph.bolt import Bolt
from adapters.model.filter import Eq, access, normal
from adapters.ports import SourceQuery, VectorRecord
from adapters.servers.batcher import MAX_REQUESTS
from adapters.servers.server import GRAPH_SCHEMES, Address
from fusion.columns import Documents
from tests.adapters.source_fixtures import EMBEDDED, LIMITS, ServerUrl, SourceUnderTest, source_query, source_under_test
from tests.adapters.test_sources import ALL_SOURCES, content
from tests.conftest import SCOPE, unit, vector_record

pytestmark = pytest.mark.anyio

OTHER = Scope("other", "default")
CALLS = {
    "qdrant local": ("_client", "query_batch_points"),
    "qdrant": ("_client", "query_batch_points"),
    "memgraph": ("_bolt", "read"),
    "opensearch": ("_client", "msearch"),
}
"""The attribute and the method that sends the searches of each source."""
ON_SERVERS = ALL_SOURCES[len(EMBEDDED) :]


def documents(scope: Scope) -> list[VectorRecord]:
    """Stars that link to the next, every third of them sensitive, every second with a tag."""
    return [
        vector_record(
            f"{scope.tenant}-{number}",
            f"Alpha Centauri and star {'very ' * (number % 5)}bright, Vega" if number % 4 else "Alpha Centauri",
            seed=number + len(scope.tenant),
            scope=scope,
            entities=("Alpha Centauri", "Vega") if number % 4 else ("Alpha Centauri",),
            sensitivity="normal" if number % 3 else "sensitive",
            tags=("even",) if number % 2 == 0 else (),
            links=(Link(f"{scope.tenant}-{(number + 1) % 20}", "cites"),),
        )
        for number in range(20)
    ]


def cleared(query: SourceQuery) -> SourceQuery:
    """The query by someone who may see sensitive documents."""
    visible = normal(access(query.scope, Viewer("sensitive")))
    return msgspec.structs.replace(query, access=visible, filter=visible)


QUERIES = [
    source_query(),
    source_query(scope=OTHER),
    cleared(source_query()),
    cleared(source_query(scope=OTHER)),
    source_query("is Vega bright?"),
    source_query("is Vega very bright?", scope=OTHER),
    source_query(condition=Eq("tags", "even")),
    source_query(depth=3),
    msgspec.structs.replace(source_query(), vector=unit(7)),
    msgspec.structs.replace(
        source_query("what is near?"), seeds=Documents.of_ids(("default-1", "default-5", "default-7"))
    ),
    msgspec.structs.replace(source_query("what is near Vega?"), seeds=Documents.of_ids(("default-2", "default-4"))),
    msgspec.structs.replace(source_query("nothing of this"), hops=1),
]


@pytest.fixture(params=ON_SERVERS)
async def searched(
    request: pytest.FixtureRequest, tmp_path: Path, server_url: ServerUrl
) -> AsyncIterator[tuple[SourceUnderTest, str]]:
    async with source_under_test(request.param, tmp_path, server_url) as subject:
        await subject.write([*documents(SCOPE), *documents(OTHER)])
        yield subject, request.param


async def test_each_search_has_the_result_that_it_has_alone(
    searched: tuple[SourceUnderTest, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever tenant, clearance, filter, depth, seeds and hops the others have."""
    subject, name = searched
    queries = QUERIES * 2
    alone = [content(await subject.source.search(query)) for query in queries]
    assert len({str(each) for each in alone}) > 4
    attribute, method = CALLS[name]
    target = getattr(subject.source, attribute)
    send, calls, texts = getattr(target, method), 0, 0

    async def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal calls, texts
        calls += 1
        if name == "memgraph":
            words = {str(request.get("words")) for request in arguments[1]["requests"]}
            texts = max(texts, len(words))
        await asyncio.sleep(0)  # the client's local mode of Qdrant waits for nothing
        return await send(*arguments, **named)

    monkeypatch.setattr(target, method, counted)
    monkeypatch.setattr("adapters.servers.batcher.MAX_CALLS", 1)
    together = await asyncio.gather(*(subject.source.search(query) for query in queries))
    assert [content(each) for each in together] == alone
    # Statements of the graph are shared by searches of the same caller only, but by different queries.
    if name == "memgraph":
        assert texts > 1
    assert calls < (2 * len(queries) if name == "memgraph" else 2 + len(queries) / MAX_REQUESTS)


@pytest.mark.server
async def test_a_search_that_opensearch_refuses_does_not_fail_the_others(
    tmp_path: Path, server_url: ServerUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It returns no more than 10,000 documents."""
    async with source_under_test("opensearch", tmp_path, server_url) as subject:
        await subject.write(documents(SCOPE))
        await subject.source.search(source_query())  # so that the languages of the documents are known
        monkeypatch.setattr("adapters.servers.batcher.MAX_CALLS", 1)
        client: Any = subject.source._client  # type: ignore[attr-defined]
        msearch, sent = client.msearch, []

        async def recorded(**named: Any) -> Any:
            sent.append(len(named["body"]) // 2)
            return await msearch(**named)

        monkeypatch.setattr(client, "msearch", recorded)
        queries = [source_query(), source_query(), source_query(depth=10_001), source_query()]
        results = await asyncio.gather(*map(subject.source.search, queries), return_exceptions=True)
    assert sent == [1, 3]
    _, first, refused, last = results
    assert isinstance(refused, Rejected)
    assert not isinstance(first, BaseException)
    assert not isinstance(last, BaseException)
    assert len(first) == len(last) == 10


@pytest.mark.server
async def test_a_request_that_the_graph_server_refuses_does_not_fail_the_others(
    server_url: ServerUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement fails as a whole, so each request is sent again by itself."""
    monkeypatch.setattr("adapters.servers.batcher.MAX_CALLS", 1)
    text = "UNWIND $requests AS request RETURN request.number AS number, $dividend / request.divisor AS quotient"
    bolt = Bolt(Address.parse(server_url("bolt"), GRAPH_SCHEMES), LIMITS)
    sent = mock.AsyncMock(wraps=bolt.read)
    monkeypatch.setattr(bolt, "read", sent)
    reads = BatchedReads(bolt)
    requests = [reads.read(text, {"divisor": divisor}, {"dividend": 12}) for divisor in (2, 3, 0, 4)]
    results = await asyncio.gather(*requests, return_exceptions=True)
    await bolt.close()
    assert [len(call.args[1]["requests"]) for call in sent.await_args_list] == [1, 3, 1, 1, 1]
    _, first, refused, last = results
    assert isinstance(refused, Rejected)
    assert (first, last) == ({"number": 0, "quotient": 4}, {"number": 0, "quotient": 3})
