"""Every source with the store behind it, so that one suite can be held against all of them.

Real engines and real servers, but for two: ``qdrant local`` is the client's own mode without a server (its meaning,
not its speed or its errors), and ``memgraph`` is run against Neo4j over Bolt unless ``TRIVIUM_TEST_BOLT_URL`` says
otherwise.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from qdrant_client import AsyncQdrantClient

from adapters import DocumentReader, Entry, Retriever
from adapters.embedded import Library
from adapters.fingerprint import generation_name
from adapters.graph.bolt import Bolt
from adapters.graph.embedded import EmbeddedGraph
from adapters.graph.memgraph import MemgraphGraph
from adapters.graph.part import GraphPart
from adapters.keyword import opensearch
from adapters.keyword.embedded import EmbeddedKeyword, KeywordPart
from adapters.keyword.opensearch import OpenSearchKeyword
from adapters.port import Key, Store
from adapters.server import GRAPH, KEYWORD, VECTOR, Address, Limits
from adapters.vector import qdrant
from adapters.vector.embedded import EmbeddedVector, VectorPart
from adapters.vector.qdrant import QdrantVector
from tests.conftest import DIMENSION

LIMITS = Limits(read_s=20.0, write_s=120.0)
Url = Callable[[str], str]


class Stand(Protocol):
    """A source that can be written to and opened again."""

    source: Retriever
    reader: DocumentReader | None
    """Whoever holds the documents themselves, where that is the same store."""

    async def write(self, upserts: Sequence[Entry], deletes: Iterable[Key] = ()) -> None:
        """What the source finds from now on."""
        ...

    async def again(self) -> Retriever:
        """The same source as another process, or this one after a restart, would open it."""
        ...


class Embedded:
    """One of the three sources of a library."""

    def __init__(self, folder: Path, make: Callable[[Library], Retriever]) -> None:
        self._folder, self._make = folder, make
        self._library = self._open()
        self.source = make(self._library)
        self.reader = self._library

    def _open(self) -> Library:
        return Library(self._folder, (VectorPart(), KeywordPart(), GraphPart()), "test-1")

    async def write(self, upserts: Sequence[Entry], deletes: Iterable[Key] = ()) -> None:
        await self._library.write(upserts, deletes)

    async def again(self) -> Retriever:
        return self._make(self._open())


class Served:
    """A source that is its own store."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.source: Any = make()
        self.reader = self.source if isinstance(self.source, OpenSearchKeyword) else None
        self.opened: list[Store] = [self.source]
        self._versions = count(1)

    async def write(self, upserts: Sequence[Entry], deletes: Iterable[Key] = ()) -> None:
        newest = {entry.record.key: entry for entry in upserts}
        gone = [key for key in deletes if key not in newest]
        await self.source.apply(next(self._versions), list(newest.values()), gone)

    async def again(self) -> Retriever:
        opened = self._make()
        self.opened.append(opened)
        await opened.prepare()
        return opened  # type: ignore[no-any-return]


EMBEDDED: dict[str, Callable[[Library], Retriever]] = {
    "embedded vector": lambda library: EmbeddedVector(library, VectorPart()),
    "embedded graph": lambda library: EmbeddedGraph(library, GraphPart()),
    "embedded keyword": lambda library: EmbeddedKeyword(library, KeywordPart()),
}
SERVED = ("qdrant", "memgraph", "opensearch")


@asynccontextmanager
async def standing(name: str, folder: Path, url: Url) -> AsyncIterator[Stand]:
    """A stand by its name; what it made on a server is under a name of its own, and removed."""
    if name in EMBEDDED:
        yield Embedded(folder / "index", EMBEDDED[name])
        return
    index = f"test-{uuid.uuid4().hex}"
    if name == "qdrant local":
        client = AsyncQdrantClient(":memory:")
        stand = Served(lambda: QdrantVector(client, index, DIMENSION, "test-1", LIMITS))
    elif name == "qdrant":
        where = Address.parse(url("qdrant"), VECTOR)
        stand = Served(lambda: QdrantVector(qdrant.connect(where, None, LIMITS), index, DIMENSION, "test-1", LIMITS))
    elif name == "opensearch":
        where = Address.parse(url("opensearch"), KEYWORD)
        stand = Served(lambda: OpenSearchKeyword(opensearch.connect(where, LIMITS), index, "test-1", LIMITS))
    else:
        where = Address.parse(url("bolt"), GRAPH)
        stand = Served(lambda: MemgraphGraph(Bolt(where, LIMITS), index, "test-1"))
    await stand.source.prepare()
    try:
        yield stand
    finally:
        await _drop(name, index, url)
        for opened in stand.opened:
            await opened.close()


async def _drop(name: str, index: str, url: Url) -> None:
    """Leave a server as it was: it may be the user's."""
    built = generation_name(index, "test-1")
    if name == "qdrant":
        client = qdrant.connect(Address.parse(url("qdrant"), VECTOR), None, LIMITS)
        await client.delete_collection(built)
        await client.close()
    elif name == "opensearch":
        server = opensearch.connect(Address.parse(url("opensearch"), KEYWORD), LIMITS)
        await server.indices.delete(index=built)
        await server.indices.delete_index_template(name=built)
        await server.close()
    elif name == "memgraph":
        bolt = Bolt(Address.parse(url("bolt"), GRAPH), LIMITS)
        await bolt.define(
            [
                f"MATCH (n:{label} {{index: '{index}'}}) DETACH DELETE n"
                for label in ("Document", "Name", "Word", "Scope")
            ]
        )
        await bolt.close()
