"""Servers that answer what they should not, in the right form: nothing of it is taken for a result.

The servers are stubs (``tests/servers/stub.py``): a real one cannot be made to lie.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import struct
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import grpc
import msgspec
import pytest
from qdrant_client import grpc as qdrant_grpc
from qdrant_client.conversions.conversion import RestToGrpc

from adapters import AdapterError, BadResponse, Document, ExecutionFailed, Rejected, Unavailable, VersionMismatch
from adapters.graph.bolt import Bolt
from adapters.graph.cypher import statement
from adapters.graph.memgraph import MemgraphGraph
from adapters.graph.node_keys import NodeKeys
from adapters.keyword.opensearch import OpenSearchKeyword
from adapters.keyword.opensearch_replies import search_responses
from adapters.model.document import Record
from adapters.model.filter import EVERYTHING
from adapters.model.numbers import sortable
from adapters.model.protection import Protection
from adapters.ports import SortKey
from adapters.servers.fingerprints import fingerprint
from adapters.servers.server import Address
from adapters.vector import qdrant_connection
from fusion.columns import Documents, Ranking
from tests.adapters.servers.test_wire import LIMITS, QUOTED, SCHEMES, connected, packed
from tests.adapters.source_fixtures import source_query
from tests.conftest import SCOPE, vector_record
from tests.servers.bolt_stub import graph_server
from tests.servers.stub import Serve, http, stub

pytestmark = pytest.mark.anyio


def candidate(id_: object = "a", fields: object = None) -> str:
    return json.dumps([id_, fields])


def hits(*hits: Any) -> bytes:
    found = {"max_score": 1.0, "hits": hits}
    return json.dumps({"timed_out": False, "_shards": {"failed": 0}, "hits": found, "status": 200}).encode()


def searched(*responses: bytes) -> bytes:
    return b'{"responses":[' + b",".join(responses) + b"]}"


def hit(score: object = 1.0, *candidates: str) -> dict[str, Any]:
    return {"_score": score, "fields": {"candidate": list(candidates or (candidate(),))}}


ID = fingerprint(SCOPE.tenant, SCOPE.environment, "a")


def record(tenant: str, id_: str) -> dict[str, Any]:
    return {"tenant": tenant, "environment": SCOPE.environment, "document": {"id": id_, "text": "of another"}}


@pytest.mark.parametrize(
    "body",
    [
        hits(hit("NaN")),
        hits(hit("Infinity")),
        hits(hit(None)),
        hits(hit([1.0])),
        hits(hit(1.0, candidate(7))),
        hits(hit(1.0, candidate(None))),
        hits(hit(1.0, "not json")),
        hits(hit(1.0, candidate("a") + "," + candidate("b"))),
        hits(hit(), hit()),
        hits("text"),
        hits(None),
        b'{"status":200,"timed_out":false,"_shards":{"failed":0},"hits":[]}',
        b'{"status":200,"timed_out":false,"_shards":{"failed":0},"hits":{"hits":{"a":1}}}',
        b'{"status":200,"timed_out":false,"hits":{"hits":[]}}',
        b'{"status":200,"hits":{"hits":[]}}',
        hits().replace(b"200", b"null"),
        hits().replace(b"200", b'"OK"'),
        hits().replace(b', "status": 200', b""),
        b"[]",
        b"null",
        b"7",
        b'"text"',
        b'{"timed_out":false,"hits":' + b"[" * 100_000,
    ],
    ids=lambda body: body[:60].decode() if isinstance(body, bytes) else None,
)
async def test_hits_of_opensearch_that_are_none(body: bytes) -> None:
    await assert_refused(searched(body))


@pytest.mark.parametrize(
    "body",
    [searched(), searched(hits(hit()), hits(hit())), hits(hit()), b'{"responses":{"0":{}}}', b"[]", b"null", b"7"],
    ids=lambda body: body[:60].decode() if isinstance(body, bytes) else None,
)
async def test_responses_of_opensearch_that_are_not_of_the_searches(body: bytes) -> None:
    await assert_refused(body)


async def assert_refused(body: bytes) -> None:
    """OpenSearch's response to a search is not taken for one."""
    async with stub(http("200 OK", body)) as port:
        server = searching(port)
        with pytest.raises(BadResponse):
            await server.search(source_query())
        await server.close()


def searching(port: int) -> OpenSearchKeyword:
    """OpenSearch at a port, whose first request is a search: the languages of its documents are not counted before."""
    server = connected(f"opensearch+http://127.0.0.1:{port}")
    assert isinstance(server, OpenSearchKeyword)
    server._languages[source_query().access] = ("english",)
    return server


@pytest.mark.parametrize(
    "docs",
    [
        [{"_id": ID, "found": True, "_source": {"record": record("another tenant", "a")}}],
        [{"_id": ID, "found": True, "_source": {"record": record(SCOPE.tenant, "not requested")}}],
        [{"_id": ID, "found": True, "_source": {"record": {**record(SCOPE.tenant, "a"), "document": {"id": 7}}}}],
        [{"_id": ID, "found": True}],
        [{"_id": ID, "found": True, "_source": None}],
        [{"_id": ID}],
        [{"_id": ID, "found": "false"}],
        [{"_id": "another", "found": False}],
        [{"_id": ID, "found": False}] * 2,
        [{}],
        [],
        ["text"],
        [None],
        {"a": 1},
        7,
        None,
    ],
    ids=repr,
)
async def test_documents_of_opensearch_that_are_others(docs: object) -> None:
    async with stub(http("200 OK", json.dumps({"docs": docs}).encode())) as port:
        server = connected(f"opensearch+http://127.0.0.1:{port}")
        assert isinstance(server, OpenSearchKeyword)
        for reading in (server.fetch(SCOPE, Documents.of_ids(["a"])), server.protections(SCOPE, ["a"])):
            with pytest.raises(BadResponse):
                await reading
        await server.close()


@pytest.mark.parametrize("nodes", [{}, {"a": {}}, {"a": {"timestamp": "now"}}, {"a": None}, [], None, 7], ids=repr)
async def test_times_of_opensearch_that_are_none(nodes: object) -> None:
    async with stub(http("200 OK", json.dumps({"nodes": nodes}).encode())) as port:
        server = connected(f"opensearch+http://127.0.0.1:{port}")
        with pytest.raises(BadResponse):
            await server.clock()
        await server.close()


async def test_the_stub_s_documents_are_read_if_they_are_right() -> None:
    """So that the tests above fail for the reason that they name."""
    docs = [{"_id": ID, "found": True, "_source": {"record": record(SCOPE.tenant, "a")}}]
    async with stub(http("200 OK", json.dumps({"docs": docs}).encode())) as port:
        server = connected(f"opensearch+http://127.0.0.1:{port}")
        assert isinstance(server, OpenSearchKeyword)
        expected = Record(SCOPE.tenant, SCOPE.environment, Document(id="a", text="of another"))
        assert await server.fetch(SCOPE, Documents.of_ids(["a"])) == {"a": expected}
        assert await server.protections(SCOPE, ["a"]) == {"a": Protection()}
        await server.close()
    async with stub(http("200 OK", searched(hits(hit())))) as port:
        server = searching(port)
        assert (await server.search(source_query())).ids == ("a",)
        await server.close()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, Rejected),
        (404, Unavailable),
        (429, Unavailable),
        (500, ExecutionFailed),
        (503, Unavailable),
        (302, BadResponse),
    ],
)
async def test_a_search_that_fails_beside_another(status: int, expected: type[AdapterError]) -> None:
    answered = json.loads(hits(hit()))
    failed = {"status": status, "error": {"type": "a_exception", "reason": QUOTED}}
    first, second = search_responses({"responses": [answered, failed]})
    assert first is answered
    assert type(second) is expected
    assert second.for_operators == f"opensearch returned status {status}: a_exception"


async def test_what_only_some_shards_have_found_is_not_all() -> None:
    body = hits().replace(b'"failed": 0', b'"failed": 1')
    async with stub(http("200 OK", searched(body))) as port:
        server = searching(port)
        with pytest.raises(Unavailable, match="some shards"):
            await server.search(source_query())
        await server.close()


WEIGHT = {"value": 1.0, "description": "weight(words:a in 0) [PerFieldSimilarity], result of:"}


@pytest.mark.parametrize(
    "explained",
    [
        {"_id": "another", "_explanation": {"value": 1.0, "description": "sum of:", "details": []}},
        {"_id": ID},
        {"_id": ID, "_explanation": None},
        {"_id": ID, "_explanation": {"value": "much", "description": "sum of:"}},
        {"_id": ID, "_explanation": {"value": 1.0, "description": "max of:", "details": []}},
        {"_id": ID, "_explanation": WEIGHT},
        {"_id": ID, "_explanation": WEIGHT | {"details": [{"value": 1.0, "description": "score(freq=1.0)"}]}},
    ],
    ids=repr,
)
async def test_explanations_of_opensearch_that_are_none(explained: object) -> None:
    body = {"_shards": {"failed": 0}, "hits": {"hits": [explained]}}
    async with stub(http("200 OK", json.dumps(body).encode())) as port:
        server = searching(port)
        with pytest.raises(BadResponse):
            await server.term_scores(source_query(), ["a"])
        await server.close()


def values_of(*keys: object, count: object = 1) -> dict[str, object]:
    buckets = [{"key": key, "doc_count": count} for key in keys]
    return {"buckets": buckets, "sum_other_doc_count": 0, "doc_count_error_upper_bound": 0}


ONE, TWO, INFINITE = (f"tags\0n{sortable(number):019x}" for number in (1.0, 2.0, math.inf))
NONE = values_of()


@pytest.mark.parametrize(
    "aggregations",
    [
        [values_of("tags\0tred", count=-1), NONE, NONE],
        [values_of("tags\0tred", count=1e30), NONE, NONE],
        [values_of("tenant\0tother"), NONE, NONE],
        [values_of("tags"), NONE, NONE],
        [values_of("tags\0e"), NONE, NONE],
        [values_of(7), NONE, NONE],
        [{"buckets": []}, NONE, NONE],
        [NONE, NONE],
        [NONE, values_of(TWO), values_of(ONE)],
        [NONE, values_of(ONE), NONE],
        [NONE, values_of(ONE), values_of(INFINITE)],
        [NONE, values_of("tags\0nxyz"), values_of(ONE)],
        [NONE, values_of("other\0n0"), values_of(ONE)],
        [NONE, values_of("tags\0tred"), values_of(ONE)],
        [NONE, values_of(ONE), values_of(TWO)],  # and then no counts of ranges
    ],
    ids=repr,
)
async def test_facets_of_opensearch_that_are_none(aggregations: list[object]) -> None:
    body = {"_shards": {"failed": 0}, "aggregations": {str(n): each for n, each in enumerate(aggregations)}}
    async with stub(http("200 OK", json.dumps(body).encode())) as port:
        server = searching(port)
        with pytest.raises(BadResponse):
            await server.facets(SCOPE, {"tags": 5}, EVERYTHING)
        await server.close()


@pytest.mark.parametrize(
    "found",
    [
        {"hits": [], "total": {"value": -1}},
        {"hits": [], "total": None},
        {"hits": [{}], "total": {"value": 1}},
        {"hits": [{"fields": {"identity": []}}], "total": {"value": 1}},
        {"hits": [{"fields": {"identity": [7]}}], "total": {"value": 1}},
        {"hits": [{"fields": {"identity": ["a"], "values": [7]}}], "total": {"value": 1}},
        {"hits": [{"fields": {"identity": ["a"], "values": ["other\0tx"]}}], "total": {"value": 1}},
    ],
    ids=repr,
)
async def test_lists_of_opensearch_that_are_none(found: object) -> None:
    body = {"_shards": {"failed": 0}, "hits": found, "aggregations": {"0": values_of("tags\0tred")}}
    async with stub(http("200 OK", json.dumps(body).encode())) as port:
        server = searching(port)
        with pytest.raises(BadResponse):
            await server.ordered(EVERYTHING, SortKey("tags"), 5)
        await server.close()


@pytest.mark.parametrize(
    "bucket",
    [{"key": "a", "doc_count": 1e30}, {"key": "a", "doc_count": -1}, {"key": 7, "doc_count": 1}, {"key": "a"}],
    ids=repr,
)
async def test_counts_of_opensearch_that_are_none(bucket: object) -> None:
    body = {"_shards": {"failed": 0}, "aggregations": {"values": {"buckets": [bucket]}}}
    async with stub(http("200 OK", json.dumps(body).encode())) as port:
        server = connected(f"opensearch+http://127.0.0.1:{port}")
        assert isinstance(server, OpenSearchKeyword)
        with pytest.raises(BadResponse):
            await server.counts("collection", source_query().access)
        await server.close()


def conflict(version: int) -> dict[str, Any]:
    return {"_id": ID, "status": 409, "error": {"reason": f"current version [{version}] is higher"}}


@pytest.mark.parametrize(
    "items",
    [
        [],
        [{"index": {"_id": "another", "status": 200}}],
        [{"index": {"_id": ID, "status": 200}}] * 2,
        [{"index": {"_id": ID}}],
        [{"index": {"status": 200}}],
        [{"index": conflict(2**63 - 1)}],  # no later write could have a larger one
        [{"index": conflict(6)}],  # older than what was written
        [{}],
        None,
    ],
    ids=repr,
)
async def test_a_bulk_that_opensearch_did_not_answer_is_not_applied(items: object) -> None:
    body = json.dumps({"errors": False, "items": items}).encode()
    async with stub(http("200 OK", body)) as port:
        server = connected(f"opensearch+http://127.0.0.1:{port}")
        with pytest.raises(BadResponse):
            await server.apply(7, [vector_record("a")], [])
        await server.close()


@pytest.mark.parametrize("scheme", ["qdrant+http", "opensearch+http"])
async def test_no_redirect_is_followed(scheme: str) -> None:
    visited: list[bytes] = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visited.append(await reader.read(100))

    async with stub(elsewhere) as other:

        async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            location = f"http://127.0.0.1:{other}/"
            writer.write(f"HTTP/1.1 307 Temporary\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()

        async with stub(redirect) as port:
            server = connected(f"{scheme}://127.0.0.1:{port}")
            with pytest.raises((Unavailable, BadResponse)):
                await server.search(source_query())
            await server.close()
    assert visited == []


def compressed(size: int) -> Serve:
    content = gzip.compress(b" " * size)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
            + f"Content-Length: {len(content)}\r\n\r\n".encode()
            + content
        )
        await writer.drain()

    return serve


@pytest.mark.parametrize("scheme", ["qdrant+http", "opensearch+http"])
async def test_no_compressed_response_is_unpacked(scheme: str) -> None:
    async with stub(compressed(100_000_000)) as port:
        server = connected(f"{scheme}://127.0.0.1:{port}")
        with pytest.raises((Unavailable, BadResponse)):
            await server.search(source_query())
        await server.close()


async def begin_bolt(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Start a record with a text of two gigabytes; the next chunk of it."""
    await reader.readexactly(20)
    writer.write(b"\0\0\x04\x04")
    await reader.read(65_536)
    writer.write(packed(0x70, server="Neo4j/5.26.0", connection_id="stub"))
    await reader.read(65_536)
    header = b"\xb1\x71\x91\xd2\x7f\xff\xff\xff"
    writer.write(struct.pack(">H", len(header)) + header)
    return struct.pack(">H", 60_000) + b"x" * 60_000


async def begin_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    await reader.read(16)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[")
    return b"1," * 30_000


MAX_RESPONSE_MIB = {"bolt": 64, "opensearch+http": 256, "qdrant+http": 64}
STATEMENTS = {"bolt": 2}
"""Responses that are read at once, if there are several: the first that is too large is the end of both."""


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_an_endless_answer_is_left_when_it_is_too_large_or_the_time_is_up(scheme: str) -> None:
    begin = begin_bolt if scheme == "bolt" else begin_http
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        with suppress(ConnectionError):
            chunk = await begin(reader, writer)
            while not writer.is_closing():
                writer.write(chunk)
                sent += len(chunk)
                await writer.drain()
                await asyncio.sleep(0)

    patient = replace(LIMITS, read_timeout_s=60.0, write_timeout_s=60.0)
    async with stub(endless) as port:
        for limits in (LIMITS, patient):
            server = connected(f"{scheme}://127.0.0.1:{port}", limits)
            sent = 0
            with pytest.raises(AdapterError):
                async with asyncio.timeout(55):
                    await server.search(source_query())
            await server.close()
            assert sent < (MAX_RESPONSE_MIB.get(scheme, 0) * STATEMENTS.get(scheme, 1) + 32) * 1024 * 1024
    assert sent >= MAX_RESPONSE_MIB.get(scheme, 0) * 1024 * 1024


@pytest.mark.parametrize("call", ["release", "create", "check"])
async def test_the_introduction_of_a_graph_server_has_a_maximum_size_too(call: str) -> None:
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        with suppress(ConnectionError):
            await reader.readexactly(20)
            writer.write(b"\0\0\x04\x04")
            while not writer.is_closing():
                writer.write(struct.pack(">H", 60_000) + b"x" * 60_000)
                sent += 60_002
                await writer.drain()
                await asyncio.sleep(0)

    async with stub(endless) as port:
        server = connected(f"bolt://127.0.0.1:{port}", replace(LIMITS, read_timeout_s=60.0, write_timeout_s=60.0))
        with pytest.raises(AdapterError):
            async with asyncio.timeout(55):
                await getattr(server, call)()
        await server.close()
    assert 64 < sent / 1024 / 1024 < 96


SEEDED = msgspec.structs.replace(source_query(), seeds=Documents.of_ids(("seed",)))
KEYS = NodeKeys("stub")
SEED = KEYS.document((SCOPE.tenant, SCOPE.environment, "seed"))
NAME = KEYS.names(SCOPE)("alpha centauri")
WORD = KEYS.words(SCOPE)("alpha")
RING = {"keys": [SEED, "b"], "masses": [0.5, 0.5], "ids": ["a", ""], "fields": ["null", ""]}
NO_MORE = {name: [] for name in RING}
SEEDS = {
    "number": 0, "documents": 10, "words": 900, "link_types": ["by"], "link_forward": [1.0], "link_backward": [0.5],
    "frequencies": [[WORD, 2, 1]], "mentions": [[NAME, 1, 1]],
    "ring": {name: values[:1] for name, values in RING.items()},
}  # fmt: skip
STEP = {"number": 0, "ring": RING, "passing": NO_MORE}


class LyingBolt(Bolt):
    """Bolt whose statements return fixed rows: what a server may send in the right form."""

    def __init__(self, rows: Mapping[str, object]) -> None:
        super().__init__(Address.parse("bolt://127.0.0.1:1", {"bolt": 7687}), LIMITS)
        self._rows = {statement(name): returned for name, returned in rows.items()}

    async def read(self, text: str, parameters: object, maintenance: bool = False, planning: bool = False) -> Any:
        return self._rows[text]


@asynccontextmanager
async def lying_graph(**rows: object) -> AsyncIterator[MemgraphGraph]:
    """A graph on a server that returns these rows, by statement."""
    graph = MemgraphGraph(LyingBolt(rows), "stub", "t")
    try:
        yield graph
    finally:
        await graph.close()


async def walked(seeds: object = SEEDS, step: object = STEP) -> Ranking:
    """What a search of the graph returns for these rows of its statements."""
    async with lying_graph(walk_seeds=[seeds], walk_step=[step]) as graph:
        return await graph.search(SEEDED)


def without(row: dict[str, object], name: str) -> dict[str, object]:
    return {each: value for each, value in row.items() if each != name}


NO_ROWS = ({"number": 0}, {}, None, "text")
BAD_MASSES = (float("nan"), float("inf"), -0.1, 1.1, "much", None)
NO_RING: list[object] = [
    *(None, 7, [], {}),
    *(without(RING, name) for name in RING),
    *(RING | {name: value} for name in RING for value in (None, 7, [], [None, None], [7, []], RING[name] * 2)),
    *(RING | {"masses": [mass, 0.5]} for mass in BAD_MASSES),
    RING | {"keys": [SEED, SEED]},
    RING | {"ids": ["other", ""], "fields": ["{", ""]},
]
NO_COUNTS = (None, 7, [7], [["key"]], [[7, 1]], [[NAME, -1]], [[NAME, 1.5]], [[NAME, None]])
LIES = {
    "seeds": [
        *NO_ROWS,
        *(SEEDS | {name: value} for name in ("documents", "words") for value in (None, -1, 1.5, "many")),
        *(SEEDS | {"frequencies": value} for value in (*NO_COUNTS, [["unknown", 1, 1]])),
        *(SEEDS | {"mentions": value} for value in NO_COUNTS),
        *(SEEDS | {"mentions": [[NAME, *pair]]} for pair in ([1], [1, -1], [-1, 1], [1, None], [1, 1, 1])),
        *(SEEDS | {"link_types": value} for value in (None, [7], ["by", "of"], [])),
        *(
            SEEDS | {name: value}
            for name in ("link_forward", "link_backward")
            for value in (None, [float("nan")], [-1.0], ["much"], [], [1.0, 1.0])
        ),
        *(SEEDS | {"ring": ring} for ring in (*NO_RING, RING)),
        *(without(SEEDS, name) for name in SEEDS),
    ],
    "step": [
        *NO_ROWS,
        *(STEP | {name: ring} for name in ("ring", "passing") for ring in NO_RING),
        *(without(STEP, name) for name in STEP),
    ],
}


@pytest.mark.parametrize(("statement_", "row"), [(name, row) for name, rows in LIES.items() for row in rows], ids=repr)
async def test_rows_of_the_graph_that_are_none(statement_: str, row: object) -> None:
    with pytest.raises(BadResponse):
        await (walked(seeds=row) if statement_ == "seeds" else walked(step=row))


@pytest.mark.parametrize("row", [row for row in LIES["seeds"] if row != SEEDS | {"ring": RING}])
async def test_whether_a_query_mentions_an_entity_is_not_known(row: object) -> None:
    async with lying_graph(walk_seeds=[row]) as graph:
        with pytest.raises(BadResponse):
            await graph.mentions_entity(SEEDED)


@pytest.mark.parametrize("rows", [[{"build_id": 7}], [{}], [None], ["text"], None, 7], ids=repr)
async def test_an_index_of_the_graph_that_is_none(rows: object) -> None:
    for call in ("check", "count"):
        async with lying_graph(index_build=rows, count_documents=rows) as graph:
            with pytest.raises(BadResponse):
                await getattr(graph, call)()


async def test_a_build_of_the_graph_is_not_quoted() -> None:
    async with lying_graph(index_build=[{"build_id": QUOTED}]) as graph:
        with pytest.raises(VersionMismatch) as error:
            await graph.check()
    assert QUOTED not in error.value.for_operators


@pytest.mark.parametrize(("alias", "named"), [("stub-0123abcd", "stub-0123abcd"), (QUOTED, "another")])
async def test_an_alias_of_qdrant_is_named_if_it_may_be_one_of_ours(alias: str, named: str) -> None:
    aliases = [{"alias_name": "stub", "collection_name": alias}]
    body = json.dumps({"result": {"aliases": aliases}, "status": "ok", "time": 0.1}).encode()
    async with stub(http("200 OK", body)) as port:
        server = connected(f"qdrant+http://127.0.0.1:{port}")
        with pytest.raises(VersionMismatch, match=f"points to {named}, the settings require"):
            await server.check()
        await server.close()


@pytest.mark.parametrize("status", ["acknowledged", "wait_timeout"])
async def test_a_write_that_qdrant_has_only_received_is_not_applied(status: str) -> None:
    body = json.dumps({"result": {"operation_id": 1, "status": status}, "status": "ok", "time": 0.1}).encode()
    async with stub(http("200 OK", body)) as port:
        server = connected(f"qdrant+http://127.0.0.1:{port}")
        with pytest.raises(AdapterError):
            await server.apply(7, [vector_record("a")], [])
        with pytest.raises(AdapterError):
            await server.apply(7, [], [("t", "e", "a")])
        await server.close()


async def test_rows_of_the_graph_that_are_right_are_read() -> None:
    ranking = await walked()
    assert ranking.ids == ("a",)
    assert 0 < ranking.entity_coverage <= 1
    seeds = SEEDS | {"ring": NO_MORE}
    async with lying_graph(walk_seeds=[seeds]) as graph:
        assert await graph.mentions_entity(SEEDED)
    async with lying_graph(walk_seeds=[seeds | {"mentions": []}]) as graph:
        assert not await graph.mentions_entity(SEEDED)


@pytest.mark.parametrize(
    ("alias", "named"),
    [("stub-0123abcd", "stub-0123abcd"), ("stub-of-another-build", "another"), ("secret", "another")],
)
async def test_an_alias_of_another_build_is_named_if_it_is_one_of_ours(alias: str, named: str) -> None:
    async with stub(http("200 OK", json.dumps({alias: {"aliases": {"stub": {}}}}).encode())) as port:
        server = connected(f"opensearch+http://127.0.0.1:{port}")
        with pytest.raises(VersionMismatch, match=f"alias 'stub' points to {named}, the settings require 'stub-"):
            await server.check()
        await server.close()


def scored(id_: object = "a", score: float = 1.0, fields: object = None, **payload: object) -> dict[str, Any]:
    point = {"id": str(uuid.UUID(int=1)), "version": 1, "score": score}
    return {**point, "payload": {"id": id_, "rank_fields": fields, **payload}}


QDRANT_LIES = [
    [scored(7)],
    [scored(None)],
    [scored(["a"])],
    [scored(True)],
    [scored("a", fields={"importance": "much"})],
    [scored("a", fields=[1, 2, 3])],
    [scored("a"), scored("a")],
    [scored("a", float("nan"))],
    [scored("a", float("inf"))],
    [scored("a") | {"payload": {"no": "id"}}],
]


@asynccontextmanager
async def qdrant_over_grpc(points: Sequence[dict[str, Any]], responses: int = 1) -> AsyncIterator[str]:
    """A server with Qdrant's own service definition that answers every query with these points."""

    async def answer(*_: object) -> object:
        result = [
            qdrant_grpc.ScoredPoint(
                id=qdrant_grpc.PointId(uuid=point["id"]),
                score=point["score"],
                payload=RestToGrpc.convert_payload(point["payload"]),
            )
            for point in points
        ]
        return qdrant_grpc.QueryBatchResponse(result=[qdrant_grpc.BatchResult(result=result)] * responses)

    server = grpc.aio.server()
    qdrant_grpc.add_PointsServicer_to_server(
        type("Lying", (qdrant_grpc.PointsServicer,), {"QueryBatch": answer})(), server
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"qdrant+grpc://127.0.0.1:{port}"
    finally:
        await server.stop(None)


@asynccontextmanager
async def qdrant_over_rest(points: Sequence[dict[str, Any]], responses: int = 1) -> AsyncIterator[str]:
    body = json.dumps({"result": [{"points": points}] * responses, "status": "ok", "time": 0.1}).encode()
    async with stub(http("200 OK", body)) as port:
        yield f"qdrant+http://127.0.0.1:{port}"


QDRANT = pytest.mark.parametrize("protocol", [qdrant_over_rest, qdrant_over_grpc])


@QDRANT
@pytest.mark.parametrize("points", QDRANT_LIES, ids=repr)
async def test_points_of_qdrant_that_are_none(protocol: Any, points: Sequence[dict[str, Any]]) -> None:
    async with protocol(points) as url:
        server = connected(url)
        with pytest.raises(BadResponse):
            await server.search(source_query())
        await server.close()


@QDRANT
@pytest.mark.parametrize("responses", [0, 2])
async def test_responses_of_qdrant_that_are_not_of_the_searches(protocol: Any, responses: int) -> None:
    async with protocol([scored()], responses) as url:
        server = connected(url)
        with pytest.raises(BadResponse):
            await server.search(source_query())
        await server.close()


@QDRANT
async def test_a_huge_response_of_qdrant_is_refused(protocol: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qdrant_connection, "_MAX_RESPONSE_BYTES", 1_000)
    async with protocol([scored(str(number)) for number in range(100)]) as url:
        server = connected(url)
        with pytest.raises((Unavailable, BadResponse)):
            await server.search(source_query())
        await server.close()


@QDRANT
async def test_points_of_qdrant_that_are_right_are_read(protocol: Any) -> None:
    async with protocol([scored("a", 0.5), scored("b", 0.25)]) as url:
        server = connected(url)
        ranking = await server.search(source_query())
        assert (ranking.ids, ranking.scores.tolist()) == (("a", "b"), [0.5, 0.25])
        await server.close()


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [STEP, STEP],
        [STEP, STEP | {"number": 1}],
        [STEP | {"number": 1}],
        [STEP | {"number": None}],
        [STEP | {"number": [0]}],
    ],
    ids=repr,
)
async def test_rows_of_the_graph_that_are_not_of_the_searches(rows: object) -> None:
    async with lying_graph(walk_seeds=[SEEDS], walk_step=rows) as graph:
        with pytest.raises(BadResponse):
            await graph.search(SEEDED)


async def test_rows_over_bolt_that_are_right_are_read() -> None:
    async with stub(graph_server([STEP | SEEDS])) as port:
        server = connected(f"bolt://127.0.0.1:{port}")
        assert (await server.search(SEEDED)).ids == ("a",)
        await server.close()


@pytest.mark.parametrize(
    "rows",
    [
        *([SEEDS | STEP | {"ring": ring}] for ring in NO_RING),
        [
            STEP
            | SEEDS
            | {"ring": NO_MORE | {"keys": [SEED], "masses": [1.0], "ids": ["a"], "fields": ['{"x": "much"}']}}
        ],
        [{"number": 0, "other": 1}],
        [{"other": 1}],
        [{"number": 0, "ring": None}],
    ],
    ids=repr,
)
async def test_rows_over_bolt_that_are_none(rows: Sequence[dict[str, Any]]) -> None:
    async with stub(graph_server(rows)) as port:
        server = connected(f"bolt://127.0.0.1:{port}")
        with pytest.raises(BadResponse):
            await server.search(SEEDED)
        await server.close()
