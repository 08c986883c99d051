from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from qdrant_client import AsyncQdrantClient
from qdrant_client.models import PointStruct, UpdateResult

from adapters.model.document import Record, fields
from adapters.model.errors import Unavailable
from adapters.model.index_terms import filter_terms
from adapters.servers.fingerprints import fingerprint
from adapters.servers.server import VECTOR_SCHEMES, Address
from adapters.vector import qdrant_connection
from adapters.vector.qdrant import QdrantVector
from tests.adapters.source_fixtures import LIMITS
from tests.conftest import DIMENSION, vector_record
from tests.servers.stub import stub

VERSION = b'{"title": "qdrant", "version": "1.18.3", "commit": "0"}'

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:(Payload indexes|Local mode):UserWarning"),
]


async def test_the_stored_payload_has_the_documented_fields() -> None:
    """The format on servers: a change of it needs another build id."""
    client = AsyncQdrantClient(":memory:")
    source = QdrantVector(client, "stars", DIMENSION, "test-1", LIMITS)
    await source.create()
    written = vector_record("a", "We saw Alpha Centauri", parent_id="p", chunk_index=3, tags=("x",))
    await source.apply(1, [written], [])
    (points, _) = await client.scroll("stars", with_payload=True)
    (point,) = points
    assert point.id == fingerprint("default", "default", "a")
    assert point.payload is not None
    assert msgspec.json.decode(point.payload.pop("record"), type=Record) == written.record
    assert point.payload == {
        "id": "a",
        "scope": fingerprint("default", "default"),
        "filter_terms": filter_terms(fields(written.record)),
        "rank_fields": ["p", 3, None, None],
    }
    await source.close()


async def test_a_write_is_cut_into_requests_that_the_server_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its limit is 32 MiB over REST. Each quote of a text has two more characters in JSON in JSON."""
    client = AsyncQdrantClient(":memory:")
    source = QdrantVector(client, "stars", DIMENSION, "test-1", LIMITS)
    await source.create()
    requests: list[list[PointStruct]] = []
    upsert = client.upsert

    async def counting(name: str, points: list[PointStruct], wait: bool) -> UpdateResult:
        requests.append(points)
        return await upsert(name, points, wait=wait)

    monkeypatch.setattr(client, "upsert", counting)
    await source.apply(1, [vector_record(str(number), '"' * 1_000_000) for number in range(20)], [])
    assert sum(map(len, requests)) == await source.count() == 20
    sizes = [len(json.dumps([each.model_dump(mode="json") for each in points])) for points in requests]
    assert 8 * 2**20 < max(sizes) < 32 * 2**20
    await source.close()


class WithoutIndexes(AsyncQdrantClient):
    """A client of a collection whose payload indexes were dropped. The local mode has none, and reports none."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.indexed: list[str] = []

    async def create_payload_index(self, collection_name: str, field_name: str, *_: object, **__: object) -> Any:
        self.indexed.append(field_name)


async def test_payload_indexes_that_were_dropped_are_noticed_and_made_again() -> None:
    client = WithoutIndexes()
    source = QdrantVector(client, "stars", DIMENSION, "test-1", LIMITS)
    await source.create()
    assert client.indexed == ["scope", "filter_terms"]
    assert [each.observation for each in await source.differences()] == [
        "the payload field 'scope' has no index",
        "the payload field 'filter_terms' has no index",
    ]
    client.indexed.clear()
    await source.create()
    assert client.indexed == ["scope", "filter_terms"]
    await source.close()


async def test_a_wrong_api_key_is_a_fault_of_a_probe() -> None:
    """Qdrant tells its version without a key."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        status, body = ("200 OK", VERSION) if request.startswith(b"GET / ") else ("401 Unauthorized", b"{}")
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        writer.write(head.encode() + b"connection: close\r\n\r\n" + body)

    async with stub(serve) as port:
        address = Address.parse(f"qdrant+http://127.0.0.1:{port}", VECTOR_SCHEMES)
        source = QdrantVector(qdrant_connection.connect(address, None, LIMITS), "stars", DIMENSION, "test-1", LIMITS)
        with pytest.raises(Unavailable, match="401"):
            await source.release()
        await source.close()
