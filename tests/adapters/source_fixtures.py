"""Every source together with the replica behind it, so that one suite runs over all of them.

Real engines and real servers, with two exceptions: ``qdrant local`` is the client's own mode without a server (with the
same results, but another speed and other errors), and ``memgraph`` runs against Neo4j over Bolt unless
``TRIVIUM_TEST_BOLT_URL`` is set.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from qdrant_client import AsyncQdrantClient

from adapters import Scope, Viewer
from adapters.engine import EmbeddedIndex
from adapters.graph.bolt import Bolt
from adapters.graph.component import GraphComponent
from adapters.graph.embedded import EmbeddedGraph
from adapters.graph.memgraph import MemgraphGraph
from adapters.keyword import opensearch_client
from adapters.keyword.component import KeywordComponent
from adapters.keyword.embedded import EmbeddedKeyword
from adapters.keyword.opensearch import OpenSearchKeyword
from adapters.model.filter import And, Filter, access, normal
from adapters.ports import DocumentFetcher, DocumentReader, Key, Retriever, ServerSource, SourceQuery, VectorRecord
from adapters.servers.server import GRAPH_SCHEMES, KEYWORD_SCHEMES, VECTOR_SCHEMES, Address, Limits
from adapters.vector import qdrant_connection
from adapters.vector.embedded import EmbeddedVector, VectorComponent
from adapters.vector.qdrant import QdrantVector
from tests.conftest import DIMENSION, SCOPE, unit

LIMITS = Limits(read_timeout_s=60.0, write_timeout_s=120.0)
ServerUrl = Callable[[str], str]


def source_query(
    text: str = "Alpha Centauri", condition: Filter | None = None, scope: Scope = SCOPE, depth: int = 10
) -> SourceQuery:
    """A query of a principal with the clearance ``normal``, with the vector of seed 1."""
    allowed = normal(access(scope, Viewer("normal")))
    both = normal(And((allowed, condition))) if condition else allowed
    return SourceQuery(text, depth, scope, allowed, both, unit(1))


class SourceUnderTest(Protocol):
    """A source that can be written to and opened again."""

    source: Retriever
    reader: DocumentReader | None
    """The reader of documents, if the same source is one."""
    fetcher: DocumentFetcher | None
    """The same source, if documents can be fetched from it by id."""

    async def write(self, upserts: Sequence[VectorRecord], deletes: Iterable[Key] = ()) -> None:
        """Add or replace, and delete."""
        ...

    async def reopen(self) -> Retriever:
        """The same source as another process, or this one after a restart, opens it."""
        ...


class EmbeddedSource:
    """One of the sources of an embedded index."""

    def __init__(self, folder: Path, create: Callable[[EmbeddedIndex], Retriever]) -> None:
        self._folder, self._create = folder, create
        self._index = self._open()
        self.source = create(self._index)
        self.reader = self.fetcher = self._index

    def _open(self) -> EmbeddedIndex:
        return EmbeddedIndex(self._folder, (VectorComponent(), KeywordComponent(), GraphComponent()), "test-1")

    async def write(self, upserts: Sequence[VectorRecord], deletes: Iterable[Key] = ()) -> None:
        await self._index.write(upserts, deletes)

    async def reopen(self) -> Retriever:
        return self._create(self._open())


class SourceOnServer:
    """A source on a server, which is its own replica."""

    def __init__(self, create: Callable[[], Any]) -> None:
        self._create = create
        self.source: Any = create()
        self.reader = self.source if isinstance(self.source, OpenSearchKeyword) else None
        self.fetcher = self.source if isinstance(self.source, OpenSearchKeyword | QdrantVector) else None
        self.opened: list[ServerSource] = [self.source]
        self._sequence = count(1)

    async def write(self, upserts: Sequence[VectorRecord], deletes: Iterable[Key] = ()) -> None:
        newest = {each.record.key: each for each in upserts}
        deleted = [key for key in deletes if key not in newest]
        await self.source.apply(next(self._sequence), list(newest.values()), deleted)

    async def reopen(self) -> Retriever:
        opened = self._create()
        self.opened.append(opened)
        await opened.create()
        return opened  # type: ignore[no-any-return]


EMBEDDED: dict[str, Callable[[EmbeddedIndex], Retriever]] = {
    "embedded vector": lambda index: EmbeddedVector(index, VectorComponent()),
    "embedded graph": lambda index: EmbeddedGraph(index, GraphComponent()),
    "embedded keyword": lambda index: EmbeddedKeyword(index, KeywordComponent()),
}
SERVERS = ("qdrant", "memgraph", "opensearch")


@asynccontextmanager
async def source_under_test(name: str, folder: Path, url: ServerUrl) -> AsyncIterator[SourceUnderTest]:
    """A source by name. What it creates on a server has a unique name, and is deleted at the end."""
    if name in EMBEDDED:
        yield EmbeddedSource(folder / "index", EMBEDDED[name])
        return
    index = f"test-{uuid.uuid4().hex}"
    subject = SourceOnServer(_factory(name, index, url))
    await subject.source.create()
    try:
        yield subject
    finally:
        await subject.source.drop()
        for opened in subject.opened:
            await opened.close()


def _factory(name: str, index: str, url: ServerUrl) -> Callable[[], Any]:
    if name == "qdrant local":
        client = AsyncQdrantClient(":memory:")
        return lambda: QdrantVector(client, index, DIMENSION, "test-1", LIMITS)
    if name == "qdrant":
        address = Address.parse(url("qdrant"), VECTOR_SCHEMES)
        return lambda: QdrantVector(
            qdrant_connection.connect(address, None, LIMITS), index, DIMENSION, "test-1", LIMITS
        )
    if name == "opensearch":
        address = Address.parse(url("opensearch"), KEYWORD_SCHEMES)
        return lambda: OpenSearchKeyword(opensearch_client.connect(address, LIMITS), index, "test-1", LIMITS)
    address = Address.parse(url("bolt"), GRAPH_SCHEMES)
    return lambda: MemgraphGraph(Bolt(address, LIMITS), index, "test-1")
