"""The knowledge graph in Memgraph, or in any server that speaks Bolt and the part of Cypher that the two share.

The server finds the names of a query and hands out what is near them; the walk itself is ours, the same that the
embedded graph uses: Memgraph has no personalised PageRank that takes its seeds from a query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import neo4j
import networkx as nx
import numpy as np

from adapters.document import Record, Scope, fields, passage
from adapters.errors import BadResponse, VersionMismatch
from adapters.fingerprint import fingerprint
from adapters.graph.bolt import Bolt, Row, Work
from adapters.graph.centrality import MEASURES
from adapters.graph.cypher import filtered, schema, statement
from adapters.graph.edges import named, strength
from adapters.graph.link import link, lookups
from adapters.graph.names import words
from adapters.labels import labels
from adapters.port import Centrality, Entry, Key, Query
from adapters.server import chunks, short
from fusion import Adjacency, DocId, Ranking, Walk

_AT_ONCE = 500
"""Documents a transaction."""


class MemgraphGraph:
    """The graph source, the store behind it, and its priors.

    :param name: the index: part of every key, so that several can share a server.
    :param index_version: identity of encoder and analysers; another one is refused.
    """

    def __init__(self, bolt: Bolt, name: str, index_version: str) -> None:
        self._bolt = bolt
        self._name = name
        self._index_version = index_version
        self._walk = Walk()

    async def search(self, query: Query) -> Ranking:
        """Documents near the names in the query; the score is the walk's probability, in [0, 1]. Ties by id."""
        seeds = await self._seeds(query)
        if not seeds:
            return Ranking("graph", (), ())
        text, parameters = filtered("neighbourhood", {"access": query.access, "wanted": query.filter})
        asked = {"seeds": list(seeds), "cap": self._walk.cap, "fanout": self._walk.fanout}
        rows = await self._bolt.read(text, asked | parameters)
        try:
            near = _Neighbourhood.read(rows, seeds, self._walk.fanout)
            nodes, mass = self._walk(near.adjacency(), *near.start())
            found = sorted(
                (-score, id_)
                for node, score in zip(nodes.tolist(), mass.tolist(), strict=True)
                if score > 0 and (id_ := near.wanted.get(node)) is not None
            )[: query.depth]
            return Ranking("graph", tuple(id_ for _, id_ in found), tuple(-score for score, _ in found))
        except (KeyError, TypeError, ValueError) as error:
            raise BadResponse(f"the graph server answered a search with {short(error)}") from error

    async def _seeds(self, query: Query) -> dict[str, float]:
        """The names in the query, by key, each with its weight."""
        spans, tokens = lookups(query.text)
        names = {self._key(query.scope, "name", name): name for name in spans}
        wanted = {self._key(query.scope, "word", word): word for word in tokens}
        asked = {"scope": self._key(query.scope, "scope"), "names": list(names), "words": list(wanted)}
        if not names:
            return {}
        try:
            row = (await self._bolt.read(statement("candidates"), asked))[0]
            nodes = {names[key]: number for number, key in enumerate(row["names"])}
            frequency = {wanted[key]: count for key, count in row["words"] if key is not None}
            linked = link(query.text, nodes, frequency, row["documents"])
            return {row["names"][node]: weight for node, weight in linked.seeds.items()}
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise BadResponse(f"the graph server answered for names with {short(error)}") from error

    async def centralities(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, float]:
        """See :class:`adapters.port.Priors`."""
        keys = [self._document((scope.tenant, scope.environment, id_)) for id_ in ids]
        rows = await self._bolt.read(statement("centrality"), {"keys": keys})
        return {row["id"]: float(row["centrality"]) for row in rows}

    async def compute_centralities(self, measure: Centrality) -> None:
        """Compute and keep them: PageRank by the server where it can, all others here, by networkx."""
        if measure == "none":
            return
        if measure == "pagerank" and await self._bolt.dialect() == "memgraph":
            rows = await self._bolt.read(statement("memgraph/pagerank"), {"index": self._name}, patient=True)
            ranks = {row["key"]: (row["scope"], float(row["rank"])) for row in rows}
        else:
            rows = await self._bolt.read(statement("edges"), {"index": self._name}, patient=True)
            ranks = _by_networkx(rows, measure)
        largest: dict[str, float] = {}
        for scope, rank in ranks.values():
            largest[scope] = max(largest.get(scope, 0.0), rank)
        scaled = [
            {"key": key, "centrality": rank / largest[scope] if largest[scope] > 0 else 0.0}
            for key, (scope, rank) in sorted(ranks.items())
        ]
        for batch in chunks(scaled, 10 * _AT_ONCE):
            await self._bolt.write(_one(statement("set_centrality"), {"rows": list(batch)}))

    async def prepare(self) -> None:
        """See :class:`adapters.port.Store`."""
        await self._bolt.define(schema(await self._bolt.dialect()))
        asked = {"index": self._name, "built": self._index_version}
        built = (await self._bolt.write(_one(statement("claim"), asked)))[0]["built"]
        if built != self._index_version:
            raise VersionMismatch(
                f"the graph {self._name!r} was built as {built!r}, the settings ask for {self._index_version!r}: "
                "use the settings that built it, or index again under another TRIVIUM_INDEX_NAME"
            )

    async def apply(self, version: int, upserts: Sequence[Entry], deletes: Sequence[Key]) -> None:
        """See :class:`adapters.port.Store`. A batch is one transaction, and is done once, however often it is sent."""
        for batch in chunks(upserts, _AT_ONCE):
            await self._bolt.write(self._change(version, {self._document(e.record.key): e.record for e in batch}))
        for keys in chunks(deletes, _AT_ONCE):
            await self._bolt.write(self._change(version, {self._document(key): key for key in keys}))

    async def count(self) -> int:
        """See :class:`adapters.port.Store`."""
        rows = await self._bolt.read(statement("count"), {"index": self._name}, patient=True)
        return int(rows[0]["documents"])

    async def version(self) -> str:
        """What the server says it is."""
        return await self._bolt.version()

    async def clock(self) -> float | None:
        """See :class:`adapters.port.Server`. Memgraph counts in microseconds, Neo4j in milliseconds."""
        told = float((await self._bolt.read(statement("clock"), {}))[0]["now"])
        return told / (1_000_000 if await self._bolt.dialect() == "memgraph" else 1_000)

    async def close(self) -> None:
        """See :class:`adapters.port.Store`."""
        await self._bolt.close()

    def _change(self, version: int, change: Mapping[str, Record | Key]) -> Work[None]:
        """A transaction that makes documents what ``change`` says, by key: a record, or gone.

        Names and words are counted by what a document said before and says now, so the versions that the documents
        carry keep a batch that is sent twice from being counted twice.
        """

        async def work(transaction: neo4j.AsyncManagedTransaction) -> None:
            async def run(name: str, **parameters: Any) -> list[Row]:
                return await (await transaction.run(statement(name), parameters)).data()

            held = {row["key"]: row for row in await run("held", keys=list(change))}
            due = {key: now for key, now in change.items() if held.get(key, _NOTHING)["version"] < version}
            if not due:
                return
            records = {key: now for key, now in due.items() if isinstance(now, Record)}
            gone = [key for key in due if key not in records and key in held]
            counts = _Counts()
            for key, now in due.items():
                counts.add(held.get(key, _NOTHING), -1, self._scope_of(now))
                if isinstance(now, Record):
                    counts.add(_said(now), +1, self._scope_of(now))
            shared = {"index": self._name, "version": version}
            await run("clear", keys=list(due))
            await run("document", rows=[self._row(key, record) for key, record in sorted(records.items())], **shared)
            mentions = [row for key, record in records.items() for row in self._mentions(key, record)]
            await run("mention", rows=mentions, **shared)
            await run(
                "link", rows=[row for key, record in records.items() for row in self._links(key, record)], **shared
            )
            await run("remove", keys=gone, **shared)
            await run("count_name", rows=self._rows("name", counts.names))
            await run("count_word", rows=self._rows("word", counts.words), **shared)
            await run("count_document", rows=self._rows("scope", counts.documents), **shared)

        return work

    def _row(self, key: str, record: Record) -> Row:
        return {
            "key": key,
            "id": record.document.id,
            "scope": self._key(Scope(record.tenant, record.environment), "scope"),
            "labels": labels(fields(record)),
            "words": sorted(_said(record)["words"]),
        }

    def _mentions(self, key: str, record: Record) -> list[Row]:
        scope = Scope(record.tenant, record.environment)
        return [
            {"document": key, "key": self._key(scope, "name", name), "name": name} for name in sorted(named(record))
        ]

    def _links(self, key: str, record: Record) -> list[Row]:
        return [
            {
                "document": key,
                "target": self._document((record.tenant, record.environment, each.target)),
                "type": each.type,
                "weight": strength(each),
            }
            for each in record.document.links
            if each.target != record.document.id
        ]

    def _rows(self, kind: str, counts: Counter[tuple[Scope, str]]) -> list[Row]:
        """Sorted, so that two writers lock what they share in the same order."""
        changed = [
            {"key": self._key(scope, kind, *([text] if text else [])), "by": by}
            for (scope, text), by in counts.items()
            if by
        ]
        return sorted(changed, key=lambda row: str(row["key"]))

    def _scope_of(self, now: Record | Key) -> Scope:
        return Scope(now.tenant, now.environment) if isinstance(now, Record) else Scope(now[0], now[1])

    def _key(self, scope: Scope, *parts: str) -> str:
        return fingerprint(self._name, scope.tenant, scope.environment, *parts)

    def _document(self, key: Key) -> str:
        tenant, environment, id_ = key
        return self._key(Scope(tenant, environment), "document", id_)


_NOTHING: Mapping[str, Any] = {"present": False, "version": 0, "words": [], "names": []}
"""What is held of a document that is not there."""


def _said(record: Record) -> Row:
    """What a record says, in the form in which the server tells what it holds."""
    return {"present": True, "words": set(words(passage(record.document))), "names": named(record)}


def _one(query: str, parameters: Row) -> Work[list[Row]]:
    async def work(transaction: neo4j.AsyncManagedTransaction) -> list[Row]:
        return await (await transaction.run(query, parameters)).data()

    return work


@dataclass(slots=True)
class _Counts:
    """By how much a change moves the degree of names, the count of words and the number of documents."""

    names: Counter[tuple[Scope, str]] = field(default_factory=Counter)
    words: Counter[tuple[Scope, str]] = field(default_factory=Counter)
    documents: Counter[tuple[Scope, str]] = field(default_factory=Counter)

    def add(self, said: Mapping[str, Any], sign: int, scope: Scope) -> None:
        """Count what one document says, or no longer says."""
        if said["present"]:
            self.documents[scope, ""] += sign
            self.names.update({(scope, name): sign for name in said["names"]})
            self.words.update({(scope, word): sign for word in said["words"]})


@dataclass(slots=True)
class _Neighbourhood:
    """Nodes and edges near the seeds, numbered; each row sums to at most 1, what leads elsewhere being left out."""

    numbers: dict[str, int] = field(default_factory=dict)
    wanted: dict[int, str] = field(default_factory=dict)
    edges: dict[tuple[int, int], float] = field(default_factory=dict)
    seeds: dict[int, float] = field(default_factory=dict)

    @classmethod
    def read(cls, rows: Sequence[Row], seeds: Mapping[str, float], fanout: int) -> _Neighbourhood:
        """From the server's answer. Strengths are scaled as the embedded graph does: by all edges of a node."""
        near = cls()
        near.seeds = {near._number(key): weight for key, weight in seeds.items()}
        for row in rows:
            document = near._number(row["key"])
            if row["wanted"]:
                near.wanted[document] = row["id"]
            mentions = [(key, degree) for key, degree in row["mentions"] if key is not None]
            links: dict[str, float] = {}
            for key, weight in row["links"]:
                if key is not None:
                    links[key] = max(weight, links.get(key, 0.0))
            total = sum(1 / sqrt(degree) for _, degree in mentions) + sum(links.values())
            for key, degree in mentions:
                name = near._number(key)
                near.edges[document, name] = 1 / sqrt(degree) / total
                if degree <= fanout:  # the name's own row: each of its edges weighs the same
                    near.edges[name, document] = 1 / degree
            for key, weight in links.items():
                near.edges[document, near._number(key)] = weight / total
        return near

    def adjacency(self) -> Adjacency:
        """In compressed sparse rows."""
        ends = sorted(self.edges)
        sources = np.fromiter((source for source, _ in ends), np.int64, len(ends))
        offsets = np.concatenate(([0], np.cumsum(np.bincount(sources, minlength=len(self.numbers)))))
        return Adjacency(
            offsets.astype(np.int64),
            np.fromiter((target for _, target in ends), np.int32, len(ends)),
            np.fromiter((self.edges[end] for end in ends), np.float32, len(ends)),
        )

    def start(self) -> tuple[Any, Any]:
        """The seeds and their weights."""
        count = len(self.seeds)
        return np.fromiter(self.seeds, np.int64, count), np.fromiter(self.seeds.values(), np.float32, count)

    def _number(self, key: str) -> int:
        return self.numbers.setdefault(key, len(self.numbers))


def _by_networkx(rows: Sequence[Row], measure: Centrality) -> dict[str, tuple[str, float]]:
    """Each document's scope and centrality, from the whole graph."""
    graph = nx.DiGraph()
    for row in rows:
        graph.add_node(row["key"])
        edges = [(key, 1 / sqrt(degree)) for key, degree in row["mentions"] if key is not None]
        edges += [(key, weight) for key, weight in row["links"] if key is not None]
        for key, weight in edges:
            graph.add_edge(row["key"], key, weight=weight)
            graph.add_edge(key, row["key"], weight=weight)
    ranks = MEASURES[measure](graph) if len(graph) else {}
    return {row["key"]: (row["scope"], float(ranks[row["key"]])) for row in rows}
