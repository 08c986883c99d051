from __future__ import annotations

import msgspec
import pytest
from qdrant_client import AsyncQdrantClient

from adapters.model.document import Record, fields
from adapters.model.index_terms import filter_terms
from adapters.servers.fingerprints import fingerprint
from adapters.vector.qdrant import QdrantVector
from tests.adapters.source_fixtures import LIMITS
from tests.conftest import DIMENSION, vector_record

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
