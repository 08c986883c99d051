"""The knowledge graph in Memgraph, or on any server with Bolt and the Cypher that Memgraph and Neo4j share.

One statement finds the names in a query and walks from the seeds. It returns the best documents, not their
neighbourhood, whose transfer would cost more than the rest of a search. Memgraph has no personalised PageRank with
seeds from a query, so the statement implements the linking of :mod:`adapters.graph.entity_linking`, and the walk of
:mod:`fusion.random_walk` in three steps (see :func:`ring_weights`); mass on edges that lead nowhere is not returned to
the seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt

import anyio.to_thread
import msgspec

from adapters.graph.bolt import Bolt, Row
from adapters.graph.centrality_measures import compute_from_edges
from adapters.graph.cypher import clauses, schema, statement, walk_statement
from adapters.graph.entity_linking import (
    MAX_FREQUENCY_RATIO,
    MIN_COMMON_FREQUENCY,
    MIN_MENTION_RATIO,
    NAMES_MASS_BASE,
    NAMES_MASS_SLOPE,
    candidate_names,
    fractions_by_rank,
)
from adapters.graph.link_types import KNOWN_STRENGTHS, MAX_FULL_LENGTH, TypeStrengths
from adapters.graph.memgraph_rows import (
    Build,
    DocumentCount,
    FoundDocuments,
    MeasuredDocument,
    MentionsEntity,
    ServerTime,
    converted,
)
from adapters.graph.memgraph_write import GraphWrites, link_type_rows
from adapters.graph.node_keys import NodeKeys
from adapters.graph.planned_reads import PlannedReads
from adapters.model.batching import batches
from adapters.model.document import HIGHEST_CLEARANCE, Scope
from adapters.model.errors import AdapterError, VersionConflict, VersionMismatch
from adapters.model.filter import access, normal
from adapters.model.sources import GRAPH
from adapters.ports.graph import Centrality, LinkStrength
from adapters.ports.replica import Key, VectorRecord
from adapters.ports.retriever import SourceQuery
from adapters.ports.server import Difference
from adapters.ports.snapshot import Snapshot
from adapters.servers.server import server_ranking, unreadable
from fusion.columns import Ranking
from fusion.random_walk import Walk
from fusion.rank_fields import DocId, DocumentFields

_BATCH_DOCUMENTS = 500
"""Documents written in one transaction."""
_BATCH_UPDATES = 5_000
_MIN_RING_SIZE, _MAX_RING_SIZE = 50, 100
"""After each step a walk continues from the documents, or names, with the most mass: as many as it has seeds, within
these bounds. If a filter excludes some of these, the same number that pass it is collected, too."""
_HOPS = (None, 2)
"""The ``hops`` of the walks whose statements are planned at the start: those with seeds, and by default the others."""
_MIN_RINGS = 3
"""Minimum number of steps of a walk on the server."""
_SCORE_DIGITS = 9
"""Significant digits of scores: a server adds in any order, so the further digits are not reproducible."""
_LINKING = {
    "max_frequency_ratio": MAX_FREQUENCY_RATIO,
    "min_common_frequency": MIN_COMMON_FREQUENCY,
    "min_mention_ratio": MIN_MENTION_RATIO,
    "names_mass_base": NAMES_MASS_BASE,
    "names_mass_slope": NAMES_MASS_SLOPE,
    "max_full_length": MAX_FULL_LENGTH,
}
"""Parameters of the fragment ``linked_names`` that are the same for every query."""
_decode_fields = msgspec.json.Decoder(list[DocumentFields | None]).decode


class MemgraphGraph:
    """The graph source on a server.

    It is a :class:`adapters.ports.ServerSource`, an :class:`adapters.ports.EntityLookup`, a
    :class:`adapters.ports.CentralityReader` and a :class:`adapters.ports.GraphMaintenance`.

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
        self._walk = Walk()
        self._name_reads, self._walk_reads = PlannedReads(bolt), PlannedReads(bolt)

    async def search(self, query: SourceQuery) -> Ranking:
        """Documents that a walk reaches from the names in the query and from its seeds. Ties by id.

        The score is the probability of the walk, as far as the stored strengths are up to date. Without a name and a
        seed the ranking is empty.
        """
        request = self._request(query)
        seeds = len(request["documents"])
        if not request["spans"] and not seeds:
            return Ranking.empty(GRAPH.name)
        walk, parameters = self._walk_statement(query, seeds)
        row = await self._walk_reads.read(walk, request, parameters)
        found = converted(row, FoundDocuments, "a search")
        try:
            scores = [float(f"{score:.{_SCORE_DIGITS}g}") for score in found.scores]
            fields = _decode_fields(f"[{','.join(found.fields)}]")
            hits = [
                hit for hit in zip(scores, found.ids, fields, strict=True) if not hit[0] <= 0
            ]  # NaN stays, and is rejected below
            return server_ranking(GRAPH.name, hits, query.depth, min(found.coverage, 1.0))
        except (TypeError, ValueError) as error:
            raise unreadable("the graph server's response to a search", error) from error

    async def mentions_entity(self, query: SourceQuery) -> bool:
        """See :class:`adapters.ports.EntityLookup`."""
        request = self._request(query)
        if not request["spans"]:
            return False
        row = await self._name_reads.read(statement("mentions_entity"), request, self._linking(query))
        return converted(row, MentionsEntity, "a search for names").mentions

    def _walk_statement(self, query: SourceQuery, seeds: int) -> tuple[str, Row]:
        """The statement of a walk, and its parameters besides those of :meth:`_request`."""
        walk = Walk.of_hops(query.hops)
        rings = max(_MIN_RINGS, walk.hops)
        return walk_statement(rings), self._linking(query) | {
            "weights": ring_weights(walk, rings),
            "cap": min(max(seeds, _MIN_RING_SIZE), _MAX_RING_SIZE),
            "fanout": self._walk.fanout,
            "depth": query.depth,
            "chosen": self._chosen,
            "known": KNOWN_STRENGTHS,
            "filter": clauses(query.filter),
        }

    def _request(self, query: SourceQuery) -> Row:
        """The words of a query, the possible names in it, and the documents to start from."""
        candidates = candidate_names(query.text)
        key_of_name, key_of_word = self._keys.names(query.scope), self._keys.words(query.scope)
        documents = [self._keys.document((query.scope.tenant, query.scope.environment, id_)) for id_ in query.seed_ids]
        return {
            "words": [key_of_word(word) for word in candidates.words],
            "spans": [[key_of_name(name), name.count(" ") + 1, starts] for name, starts in candidates.names.items()],
            "documents": list(zip(documents, fractions_by_rank(len(documents)), strict=True)),
        }

    def _linking(self, query: SourceQuery) -> Row:
        """The parameters of the fragment ``linked_names``."""
        return {
            "scope": self._keys.scope(query.scope),
            "access": clauses(query.access),
            "seed_fanout": self._walk.seed_fanout,
            **_LINKING,
        }

    async def centralities(
        self, scope: Scope, ids: Sequence[DocId], snapshot: Snapshot | None = None
    ) -> Mapping[DocId, float]:
        """See :class:`adapters.ports.CentralityReader`. A server has only the newest state."""
        del snapshot
        keys = [self._keys.document((scope.tenant, scope.environment, id_)) for id_ in ids]
        rows = await self._bolt.read(statement("centralities"), {"keys": keys})
        return {row.id: row.centrality for row in converted(rows, list[MeasuredDocument], "a request for centralities")}

    async def update_strengths(self) -> None:
        """See :class:`adapters.ports.GraphMaintenance`."""
        rows = await self._bolt.read(statement("document_keys"), {"index": self._name}, maintenance=True)
        for keys in batches([row["key"] for row in rows], _BATCH_UPDATES):
            await self._bolt.write(statement("update_strengths"), {"keys": list(keys)})
        counts = await self._bolt.read(statement("link_counts"), {"index": self._name}, maintenance=True)
        await self._bolt.write(statement("write_link_types"), {"rows": link_type_rows(counts, self._chosen)})

    async def link_strengths(self, scope: Scope) -> Sequence[LinkStrength]:
        """See :class:`adapters.ports.LinkStrengthReader`. The strengths are those of the last maintenance."""
        rows = await self._bolt.read(statement("link_types"), {"scope": self._keys.scope(scope)})
        return converted(rows, list[LinkStrength], "a request for types of links")

    async def compute_centralities(self, measure: Centrality) -> None:
        """See :class:`adapters.ports.GraphMaintenance`. Memgraph computes PageRank, this process the others."""
        if measure == "none":
            return
        index = {"index": self._name}
        if measure == "pagerank" and await self._bolt.dialect() == "memgraph":
            rows = await self._bolt.read(statement("memgraph/pagerank"), index, maintenance=True)
            values = {row["key"]: float(row["rank"]) for row in rows}
        else:
            rows = await self._bolt.read(statement("all_edges"), index, maintenance=True)
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
        await self._bolt.change_schema(schema(await self._bolt.dialect()))
        parameters = {"index": self._name, "build_id": self._build_id}
        rows = await self._bolt.write(statement("create_index"), parameters)
        for row in converted(rows, list[Build], "the creation of the index"):
            self._check_build(row.build_id)
        self._start_planning()

    def _check_build(self, build_id: str) -> None:
        if build_id != self._build_id:
            # Without the server's build id, which may be any text.
            raise VersionMismatch(
                f"the graph {self._name!r} was built with other settings, the current ones require {self._build_id!r}: "
                "use the settings that built it, or index again under another TRIVIUM_INDEX_NAME"
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
            self._walk_reads.forget()
            self._name_reads.forget()
            raise
        self._start_planning()
        return release

    @property
    def is_warming(self) -> bool:
        """See :class:`adapters.ports.ServerProbe`."""
        return self._walk_reads.is_planning or self._name_reads.is_planning

    def _start_planning(self) -> None:
        """Have the server plan the statements of searches, those that it has not planned yet."""
        for hops in _HOPS:
            query = _any_query(hops)
            walk, parameters = self._walk_statement(query, 0)
            self._walk_reads.start_planning(walk, self._request(query), parameters)
        query = _any_query(None)
        self._name_reads.start_planning(statement("mentions_entity"), self._request(query), self._linking(query))

    async def clock(self) -> float | None:
        """See :class:`adapters.ports.ServerProbe`. Memgraph counts microseconds, Neo4j milliseconds."""
        rows = await self._bolt.read(statement("server_time"), {})
        (row,) = converted(rows, tuple[ServerTime], "a request for the time")
        return row.now / (1_000_000 if await self._bolt.dialect() == "memgraph" else 1_000)

    async def differences(self) -> Sequence[Difference]:
        """See :class:`adapters.ports.ServerSource`. A graph is not divided: each replica has all of it."""
        return ()

    async def close(self) -> None:
        """See :class:`adapters.ports.ServerSource`."""
        await self._walk_reads.close()
        await self._name_reads.close()
        await self._bolt.close()


def _any_query(hops: int | None) -> SourceQuery:
    """A query whose parameters have the types of those of every other: Neo4j has a plan for each combination of types,
    down to those of the values of a list."""
    visible = normal(access(Scope(), HIGHEST_CLEARANCE))
    return SourceQuery("", 1, Scope(), visible, visible, hops=hops)


def ring_weights(walk: Walk, rings: int) -> list[float]:
    """The weight of the mass after 0, 1, … ``rings`` steps in the probability of a walk.

    After ``n`` steps a walk with restart has the probability ``sum over k < n of (1 - follow) follow^k T^k s +
    follow^n T^n s``, where ``s`` is the mass of the seeds and ``T`` one step. Mass that goes from documents to names is
    at documents after every second step, so mass after more steps than there are rings is assumed to be distributed
    as two steps before. For two documents that is exact, otherwise an approximation.
    """
    by_step = [(1 - walk.follow) * walk.follow**step for step in range(walk.steps)] + [walk.follow**walk.steps]
    weights = by_step[: rings + 1]
    for step in range(rings + 1, len(by_step)):
        weights[rings - (step - rings) % 2] += by_step[step]
    return weights


def _weighted_edges(rows: Sequence[Row]) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """Each document with the names and documents that its edges lead to, and their weights."""
    for row in rows:
        mentions = [(key, 1 / sqrt(degree)) for key, degree in row["mentions"] if key is not None]
        yield row["key"], mentions + [(key, weight) for key, weight in row["links"] if key is not None]


def _scaled(values: Mapping[str, float], scopes: Mapping[str, str]) -> list[Row]:
    """Each centrality divided by the largest of its scope, by key."""
    largest: dict[str, float] = {}
    for key, value in values.items():
        largest[scopes[key]] = max(largest.get(scopes[key], 0.0), value)
    return [
        {"key": key, "centrality": value / largest[scopes[key]] if largest[scopes[key]] > 0 else 0.0}
        for key, value in sorted(values.items())
    ]
