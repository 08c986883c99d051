"""What only a real Qdrant shows: its limits, and what an operator changes behind the service's back."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
from qdrant_client import AsyncQdrantClient
from qdrant_client.models import StrictModeConfig

from adapters.model.errors import Rejected, Unavailable
from adapters.servers.fingerprints import build_name
from adapters.servers.server import VECTOR_SCHEMES, Address
from adapters.vector import qdrant_connection
from adapters.vector.qdrant import QdrantVector
from tests.adapters.source_fixtures import LIMITS, ServerUrl, source_query
from tests.conftest import DIMENSION, vector_record

pytestmark = [pytest.mark.anyio, pytest.mark.server]
BUILD = "test-1"


@pytest.fixture
async def client(server_url: ServerUrl) -> AsyncIterator[AsyncQdrantClient]:
    client = qdrant_connection.connect(Address.parse(server_url("qdrant"), VECTOR_SCHEMES), None, LIMITS)
    yield client
    await client.close()


@pytest.fixture
async def name(client: AsyncQdrantClient) -> AsyncIterator[str]:
    """The name of an index, whose collection is deleted at the end."""
    name = f"test-{uuid.uuid4().hex}"
    yield name
    await client.delete_collection(build_name(name, BUILD))


@pytest.fixture
async def source(client: AsyncQdrantClient, name: str) -> QdrantVector:
    source = QdrantVector(client, name, DIMENSION, BUILD, LIMITS)
    await source.create()
    return source


async def test_a_limit_of_points_is_waited_for_until_it_is_raised(
    client: AsyncQdrantClient, name: str, source: QdrantVector
) -> None:
    strict = StrictModeConfig(enabled=True, max_points_count=1)
    await client.update_collection(build_name(name, BUILD), strict_mode_config=strict)
    with pytest.raises(Unavailable, match="has reached one of its limits"):
        for number in range(100):  # the number of points is not counted at each write
            await source.apply(number + 1, [vector_record(f"{number}")], [])
    strict.max_points_count = 1_000
    await client.update_collection(build_name(name, BUILD), strict_mode_config=strict)
    await source.apply(101, [vector_record("last")], [])


async def test_a_limit_of_points_in_a_request_refuses_it(
    client: AsyncQdrantClient, name: str, source: QdrantVector
) -> None:
    strict = StrictModeConfig(enabled=True, upsert_max_batchsize=2)
    await client.update_collection(build_name(name, BUILD), strict_mode_config=strict)
    with pytest.raises(Rejected):
        await source.apply(1, [vector_record(f"{number}") for number in range(3)], [])
    await source.apply(1, [vector_record(f"{number}") for number in range(2)], [])


async def test_a_write_may_be_larger_than_a_request(source: QdrantVector) -> None:
    """Each quote of a text is four bytes in JSON in JSON, and a request has 32 MiB at most."""
    await source.apply(1, [vector_record(f"{number}", '"' * 1_000_000) for number in range(20)], [])
    assert await source.count() == 20


async def test_indexes_that_were_dropped_are_noticed_and_made_again(
    client: AsyncQdrantClient, name: str, source: QdrantVector
) -> None:
    for field in ("scope", "filter_terms"):
        await client.delete_payload_index(name, field, wait=True)
    assert [each.observation for each in await source.differences()] == [
        "the payload field 'scope' has no index",
        "the payload field 'filter_terms' has no index",
    ]
    await source.create()
    assert await source.differences() == []


async def test_a_collection_that_was_deleted_is_no_index(
    client: AsyncQdrantClient, name: str, source: QdrantVector
) -> None:
    await source.apply(1, [vector_record("a")], [])
    await client.delete_collection(build_name(name, BUILD))
    for call in (source.count(), source.search(source_query())):
        with pytest.raises(Unavailable):
            await call
    assert not await source.check()
    await source.create()
    assert await source.check()
    assert await source.count() == 0
