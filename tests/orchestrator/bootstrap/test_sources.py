"""The settings of indexes on servers reach the adapters. No server is contacted."""

from __future__ import annotations

import pytest

from adapters.keyword.opensearch import OpenSearchKeyword
from adapters.server import Partitioning
from adapters.sources import KEYWORD, VECTOR
from adapters.vector.qdrant import QdrantVector
from adapters.vector.qdrant_collection import IN_MEMORY, CollectionLayout
from orchestrator.bootstrap.sources import Backends, server_backends
from orchestrator.settings import Settings

pytestmark = pytest.mark.anyio
ON_SERVERS = {"vector": "qdrant+http://127.0.0.1:9", "keyword": "opensearch+http://127.0.0.1:9"}


async def layouts(**settings: object) -> tuple[Partitioning, CollectionLayout]:
    backends: Backends = server_backends(Settings.of(**ON_SERVERS, **settings), 384, "test-1")
    keyword, vector = backends.servers[KEYWORD.name], backends.servers[VECTOR.name]
    assert isinstance(keyword, OpenSearchKeyword)
    assert isinstance(vector, QdrantVector)
    for server in backends.servers.values():
        await server.close()
    return keyword.partitioning, vector.layout


async def test_by_default_an_index_is_not_divided_and_the_server_decides_on_copies() -> None:
    assert await layouts() == (Partitioning(), IN_MEMORY)
    assert (Partitioning().shards, Partitioning().copies) == (1, None)


async def test_every_setting_reaches_the_index_that_it_is_about() -> None:
    partitioning, layout = await layouts(
        replication_factor=5,
        opensearch_shards=2,
        qdrant_shards=3,
        qdrant_on_disk=True,
        qdrant_quantization="int8",
        qdrant_write_consistency=4,
    )
    assert partitioning == Partitioning(shards=2, copies=5)
    assert layout == CollectionLayout(shards=3, copies=5, on_disk=True, quantization="int8", write_consistency=4)
