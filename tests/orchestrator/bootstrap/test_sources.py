"""The adapters of sources on servers, as the settings name them. No server is contacted."""

from __future__ import annotations

import re
import sys

import pytest

from adapters import Unavailable
from adapters.keyword.opensearch import OpenSearchKeyword
from adapters.model.sources import GRAPH, KEYWORD, VECTOR
from adapters.servers.server import Partitioning
from adapters.vector.qdrant import QdrantVector
from adapters.vector.qdrant_collection import IN_MEMORY, CollectionLayout
from orchestrator.bootstrap.sources import Backends, server_backends
from orchestrator.settings import Settings

pytestmark = pytest.mark.anyio
ON_SERVERS = {
    "vector": "qdrant+http://127.0.0.1:9",
    "keyword": "opensearch+http://127.0.0.1:9",
    "graph": "bolt://127.0.0.1:9",
}


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


async def test_every_source_has_its_adapter_and_the_documents_are_those_of_opensearch() -> None:
    backends = server_backends(Settings.of(**ON_SERVERS), 384, "test-1")
    assert [binding.source for binding in backends.bindings.values()] == [VECTOR, KEYWORD, GRAPH]
    for name, binding in backends.bindings.items():
        assert binding.source.name == name
        assert binding.retriever is binding.server
    keyword, graph = backends.bindings[KEYWORD.name], backends.bindings[GRAPH.name]
    assert backends.documents is backends.replicas[backends.documents_replica] is keyword.retriever
    assert graph.entities is backends.centralities is backends.graph_maintenance is graph.retriever
    assert [binding.entities for binding in backends.bindings.values()] == [None, None, graph.retriever]
    assert [name.split()[:2] for name in backends.replicas] == [[name, url] for name, url in _in_order(ON_SERVERS)]
    for server in backends.servers.values():
        await server.close()


def _in_order(urls: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, urls[name]) for name in (VECTOR.name, KEYWORD.name, GRAPH.name)]


@pytest.mark.parametrize(
    ("source", "module", "package", "extra"),
    [
        ("vector", "adapters.vector.qdrant", "qdrant_client", "qdrant"),
        ("keyword", "adapters.keyword.opensearch", "opensearchpy", "opensearch"),
        ("graph", "adapters.graph.bolt", "neo4j", "memgraph"),
    ],
)
async def test_a_driver_that_is_not_installed_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, source: str, module: str, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    package_of_module, _, name = module.rpartition(".")
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.delattr(sys.modules[package_of_module], name, raising=False)
    with pytest.raises(Unavailable, match=re.escape(f"{package} is not installed: pip install 'trivium[{extra}]'")):
        server_backends(Settings.of(**{source: ON_SERVERS[source]}), 384, "test-1")
