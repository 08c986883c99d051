"""The knowledge graph in Memgraph, or on any server with Bolt and the Cypher that Memgraph and Neo4j share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from operator import itemgetter

import anyio.to_thread

from adapters.graph.bolt import Bolt, Row
from adapters.graph.centrality_measures import compute_from_edges
from adapters.graph.cypher import clauses, statement
from adapters.graph.edges import OWN_WEIGHT
from adapters.graph.link_types import TypeStrengths
from adapters.graph.memgraph_rows import (
    Build,
    DocumentCount,
    MeasuredDocument,
    NeighborhoodRow,
    ServerTime,
    converted,
)
from adapters.graph.memgraph_schema import analyze, create_schema
from adapters.graph.memgraph_search import GraphSearch
from adapters.graph.memgraph_write import GraphWrites, link_type_rows
from adapters.graph.node_keys import NodeKeys
from adapters.model.batching import batches
from adapters.model.document import Scope
from adapters.model.errors import BUILD_ADVICE, AdapterError, VersionConflict, VersionMismatch
from adapters.model.filter import Filter
from adapters.model.protection import HIGHEST_CLEARANCE, Sensitivity
from adapters.ports.graph import MAX_EXAMPLES, Centrality, LinkStrength, MentionedName, Neighborhood
from adapters.ports.replica import Key, VectorRecord
from adapters.ports.retriever import SourceQuery
from adapters.ports.server import Difference
from adapters.ports.snapshot import Snapshot
from fusion.columns import Ranking
from fusion.random_walk import Walk
from fusion.values import DocId

_BATCH_DOCUMENTS = 500
"""Documents written in one transaction."""
_BATCH_UPDATES = 5_000


class MemgraphGraph:
    """The graph source on a server.

    It is a :class:`adapters.ports.ServerSource`, an :class:`adapters.ports.EntityLookup`, a
    :class:`adapters.ports.CentralityReader`, a :class:`adapters.ports.graph.NeighborhoodReader` and a
    :class:`adapters.ports.GraphMaintenance`.

    :param bolt: closed by :meth:`close`.
    :param name: of the index. It is part of every key, so that several indexes can use one server.
    :param build_id: identity of encoder and analysers; an index of another build is an error.
    :param chosen: strengths of link types that an operator has set; they override the derived ones.
    """

    def __init__(self, bolt: Bolt, name: str, build_id: str, chosen: TypeStrengths | None = None) -> None:
        self._bolt = bolt
        self._name = name
        self._build_id = build_id
        self._chosen = dict(chosen or {})
        self._keys = NodeKeys(name)
        self._writes = GraphWrites(name)
        self._searches = GraphSearch(bolt, self._keys, self._chosen)

    async def search(self, query: SourceQuery) -> Ranking:
        """Documents that a walk reaches from the names in the query and from its seeds. Ties by id.

        The score is the probability of the walk, as far as the stored strengths are up to date. Without a name and a
        seed the ranking is empty.
        """
        return await self._searches.search(query)

    async def mentions_entity(self, query: SourceQuery) -> bool:
        """See :class:`adapters.ports.EntityLookup`."""
        return await self._searches.mentions_entity(query)

    async def centralities(
        self,
        scope: Scope,
        ids: Sequence[DocId],
        snapshot: Snapshot | None = None,
        clearance: Sensitivity = HIGHEST_CLEARANCE,
    ) -> Mapping[DocId, float]:
        """See :class:`adapters.ports.CentralityReader`. A server has only the newest state."""
        del snapshot, clearance
        keys = [self._keys.document((scope.tenant, scope.environment, id_)) for id_ in ids]
        rows = await self._bolt.read(statement("centralities"), {"keys": keys})
        return {row.id: row.centrality for row in converted(rows, list[MeasuredDocument], "a request for centralities")}

    async def update_strengths(self) -> None:
        """See :class:`adapters.ports.GraphMaintenance`."""
        await analyze(self._bolt)
        rows = await self._bolt.read(statement("document_keys"), {"index": self._name}, maintenance=True)
        for keys in batches([row["key"] for row in rows], _BATCH_UPDATES):
            await self._bolt.write(statement("update_strengths"), {"keys": list(keys), "own_weight": OWN_WEIGHT})
        counts = await self._bolt.read(statement("link_counts"), {"index": self._name}, maintenance=True)
        await self._bolt.write(statement("write_link_types"), {"rows": link_type_rows(counts, self._chosen)})

    async def link_strengths(self, scope: Scope) -> Sequence[LinkStrength]:
        """See :class:`adapters.ports.LinkStrengthReader`. The strengths are those of the last maintenance."""
        rows = await self._bolt.read(statement("link_types"), {"scope": self._keys.scope(scope)})
        return converted(rows, list[LinkStrength], "a request for types of links")

    async def neighborhood(self, scope: Scope, id_: DocId, access: Filter, limit: int) -> Neighborhood:
        """See :class:`adapters.ports.graph.NeighborhoodReader`."""
        parameters: Row = {
            "key": self._keys.document((scope.tenant, scope.environment, id_)),
            "access": clauses(access),
            "limit": limit,
            "examples": MAX_EXAMPLES,
            "max_mentions": Walk().seed_fanout,
        }
        # As maintenance: no search waits for it, and a server that has just started has to plan it.
        rows = await self._bolt.read(statement("neighborhood"), parameters, maintenance=True)
        for row in converted(rows, list[NeighborhoodRow], "a request for a neighborhood"):
            names = (MentionedName(*each) for each in row.names)
            return Neighborhood.of(row.linked, row.linked_count, names, row.name_count)
        return Neighborhood()

    async def compute_centralities(self, measure: Centrality) -> None:
        """See :class:`adapters.ports.GraphMaintenance`. This process computes them, as those of the embedded graph."""
        if measure == "none":
            return
        rows = await self._bolt.read(statement("all_edges"), {"index": self._name}, maintenance=True)
        by_node = compute_from_edges(_weighted_edges(rows), measure)
        values = {row["key"]: float(by_node[row["key"]]) for row in rows}
        for batch in batches(_scaled(values, {row["key"]: row["scope"] for row in rows}), _BATCH_UPDATES):
            await self._bolt.write(statement("write_centralities"), {"rows": list(batch)})

    async def check(self) -> bool:
        """See :class:`adapters.ports.IndexAdmin`."""
        rows = await self._bolt.read(statement("index_build"), {"index": self._name})
        for row in converted(rows, list[Build], "a request for the index"):
            self._check_build(row.build_id)
        return bool(rows)

    async def create(self) -> None:
        """See :class:`adapters.ports.IndexAdmin`."""
        await create_schema(self._bolt)
        parameters = {"index": self._name, "build_id": self._build_id}
        rows = await self._bolt.write(statement("create_index"), parameters)
        for row in converted(rows, list[Build], "the creation of the index"):
            self._check_build(row.build_id)
        self._searches.start_planning()

    def _check_build(self, build_id: str) -> None:
        if build_id != self._build_id:
            # Without the server's build id, which may be any text.
            raise VersionMismatch(
                f"the graph {self._name!r} was built with other settings, the current ones require {self._build_id!r}: "
                + BUILD_ADVICE
            )

    async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
        """See :class:`adapters.ports.Replica`. A batch is one transaction; if it is sent twice, it is applied once."""
        newer: set[int] = set()
        for batch in batches(upserts, _BATCH_DOCUMENTS):
            writes = await anyio.to_thread.run_sync(self._writes.upserts, batch)
            newer |= await self._bolt.transaction(self._writes.transaction(sequence, writes))
        for keys in batches(deletes, _BATCH_DOCUMENTS):
            newer |= await self._bolt.transaction(self._writes.transaction(sequence, self._writes.deletes(keys)))
        if newer:
            raise VersionConflict("the graph server", newer)

    async def count(self) -> int:
        """See :class:`adapters.ports.Replica`."""
        rows = await self._bolt.read(statement("count_documents"), {"index": self._name}, maintenance=True)
        (row,) = converted(rows, tuple[DocumentCount], "a count")
        return row.documents

    async def release(self) -> str:
        """See :class:`adapters.ports.ServerProbe`. It has the server plan what it lost while it was stopped."""
        try:
            release = await self._bolt.release()
        except AdapterError:
            self._searches.forget_plans()
            raise
        self._searches.start_planning()
        return release

    @property
    def is_warming(self) -> bool:
        """See :class:`adapters.ports.ServerProbe`."""
        return self._searches.is_planning

    async def clock(self) -> float | None:
        """See :class:`adapters.ports.ServerProbe`. Memgraph counts microseconds, Neo4j milliseconds."""
        rows = await self._bolt.read(statement("server_time"), {})
        (row,) = converted(rows, tuple[ServerTime], "a request for the time")
        return row.now / (1_000_000 if await self._bolt.dialect() == "memgraph" else 1_000)

    async def drop(self) -> None:
        """See :class:`adapters.ports.ServerSource`. Several transactions: one would need memory for all nodes."""
        while any(row["deleted"] for row in await self._bolt.write(statement("drop_nodes"), {"index": self._name})):
            pass

    async def differences(self) -> Sequence[Difference]:
        """See :class:`adapters.ports.ServerSource`. A graph is not divided: each replica has all of it."""
        return ()

    async def close(self) -> None:
        """See :class:`adapters.ports.ServerSource`."""
        await self._searches.close()
        await self._bolt.close()


def _weighted_edges(rows: Sequence[Row]) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """Each document with the names and documents that its edges lead to, and their weights.

    In order: servers have different orders, and a sum in another order differs in its last digit.
    """
    for row in sorted(rows, key=itemgetter("key")):
        mentions = [(key, 1 / sqrt(degree)) for key, degree in row["mentions"] if key is not None]
        yield row["key"], sorted(mentions + [(key, weight) for key, weight in row["links"] if key is not None])


def _scaled(values: Mapping[str, float], scopes: Mapping[str, str]) -> list[Row]:
    """Each centrality divided by the largest of its scope, by key."""
    largest: dict[str, float] = {}
    for key, value in values.items():
        largest[scopes[key]] = max(largest.get(scopes[key], 0.0), value)
    return [
        {"key": key, "centrality": value / largest[scopes[key]] if largest[scopes[key]] > 0 else 0.0}
        for key, value in sorted(values.items())
    ]
