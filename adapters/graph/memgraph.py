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

import anyio.to_thread
import msgspec
import neo4j
import networkx as nx

from adapters.document import Record, Scope, facts, fields, passage
from adapters.errors import BadResponse, VersionMismatch
from adapters.fingerprint import fingerprint
from adapters.graph.bolt import Bolt, Row, Work, run
from adapters.graph.centrality import MEASURES
from adapters.graph.cypher import filtered, schema, statement
from adapters.graph.edges import named, strength
from adapters.graph.link import Linked, link, lookups, start
from adapters.graph.names import words
from adapters.graph.neighbourhood import Neighbourhood
from adapters.labels import labels
from adapters.port import Centrality, Entry, Key, Query
from adapters.server import chunks, ranking, short
from fusion import DocId, Ranking, Walk

_AT_ONCE = 500
"""Documents a transaction."""
_CAP = 200
"""Documents of each kind that a neighbourhood has at most: what travels costs more than the walk over it."""


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
        """Documents near the names in the query and near ``query.near``; the score is the walk's probability.

        That is in [0, 1]. Ties by id. Empty where there is nothing to start from.
        """
        walk = self._walk
        linked, names = await self._linked(query)
        near = [self._document((query.scope.tenant, query.scope.environment, id_)) for id_ in query.near]
        if not names and not near:
            return Ranking("graph", (), ())
        text, parameters = filtered("neighbourhood", {"access": query.access, "wanted": query.filter})
        asked = {"names": names, "documents": near, "cap": _CAP, "hub": walk.fanout, "fanout": walk.seed_fanout}
        rows = await self._bolt.read(text, asked | parameters)
        try:
            around = Neighbourhood.read(rows, names, walk)
            seeds, share = start(linked, around.known(near))
            nodes, mass = walk(around.adjacency(), seeds, share)
            reached = zip(nodes.tolist(), mass.tolist(), strict=True)
            found = ((score, *around.wanted[node]) for node, score in reached if score > 0 and node in around.wanted)
            return ranking("graph", found, query.depth, linked.coverage)
        except (KeyError, TypeError, ValueError) as error:
            raise BadResponse(f"the graph server answered a search with {short(error)}") from error

    async def names(self, query: Query) -> bool:
        """See :class:`adapters.port.Priors`."""
        return bool((await self._linked(query))[1])

    async def _linked(self, query: Query) -> tuple[Linked, list[str]]:
        """The names in the query: by number, and the key of each number."""
        spans, tokens = lookups(query.text)
        names = {self._key(query.scope, "name", name): name for name in spans}
        wanted = {self._key(query.scope, "word", word): word for word in tokens}
        if not names:
            return Linked({}, 0.0), []
        text, parameters = filtered("candidates", {"access": query.access})
        asked = {
            "scope": self._key(query.scope, "scope"),
            "names": list(names),
            "words": list(wanted),
            "fanout": self._walk.seed_fanout,
        }
        rows = await self._bolt.read(text, asked | parameters)
        try:
            row = rows[0]
            keys = [key for key, _ in row["names"] if key is not None]
            degrees = [degree for key, degree in row["names"] if key is not None]
            nodes = {names[key]: number for number, key in enumerate(keys)}
            frequency = {wanted[key]: count for key, count in row["words"] if key is not None}
            linked = link(query.text, nodes, degrees.__getitem__, frequency, row["documents"])
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise BadResponse(f"the graph server answered for names with {short(error)}") from error
        return Linked(dict(enumerate(linked.seeds.values())), linked.coverage), [keys[node] for node in linked.seeds]

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
            await self._bolt.write(statement("set_centrality"), {"rows": list(batch)})

    async def built(self) -> bool:
        """See :class:`adapters.port.Store`."""
        rows = await self._bolt.read(statement("built"), {"index": self._name})
        for row in rows:
            self._check_version(row["built"])
        return bool(rows)

    async def prepare(self) -> None:
        """See :class:`adapters.port.Store`."""
        await self._bolt.define(schema(await self._bolt.dialect()))
        asked = {"index": self._name, "built": self._index_version}
        self._check_version((await self._bolt.write(statement("claim"), asked))[0]["built"])

    def _check_version(self, built: str) -> None:
        if built != self._index_version:
            raise VersionMismatch(
                f"the graph {self._name!r} was built as {built!r}, the settings ask for {self._index_version!r}: "
                "use the settings that built it, or index again under another TRIVIUM_INDEX_NAME"
            )

    async def apply(self, version: int, upserts: Sequence[Entry], deletes: Sequence[Key]) -> None:
        """See :class:`adapters.port.Store`. A batch is one transaction, and is done once, however often it is sent."""
        for batch in chunks(upserts, _AT_ONCE):
            written = await anyio.to_thread.run_sync(self._all_written, batch)
            await self._bolt.change(self._change(version, written))
        for keys in chunks(deletes, _AT_ONCE):
            gone = [_Now(self._document(key), Scope(key[0], key[1]), _NOTHING) for key in keys]
            await self._bolt.change(self._change(version, gone))

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

    def _change(self, version: int, change: Sequence[_Now]) -> Work[None]:
        """A transaction that makes documents what ``change`` says.

        Names and words are counted by what a document said before and says now, so the versions that the documents
        carry keep a batch that is sent twice from being counted twice.
        """

        async def work(transaction: neo4j.AsyncManagedTransaction) -> None:
            async def tell(name: str, **parameters: Any) -> list[Row]:
                return await run(transaction, statement(name), parameters)

            held = {row["key"]: row for row in await tell("held", keys=[now.key for now in change])}
            due = [now for now in change if held.get(now.key, _NOTHING)["version"] < version]
            if not due:
                return
            counts = _Counts()
            for now in due:
                counts.add(held.get(now.key, _NOTHING), -1, now.scope)
                counts.add(now.said, +1, now.scope)
            written = [now for now in due if now.said["present"]]
            gone = [now.key for now in due if not now.said["present"] and now.key in held]
            shared = {"index": self._name, "version": version}
            await tell("clear", keys=[now.key for now in due])
            await tell("document", rows=[now.row for now in written], **shared)
            await tell("mention", rows=[row for now in written for row in now.mentions], **shared)
            await tell("link", rows=[row for now in written for row in now.links], **shared)
            await tell("remove", keys=gone, **shared)
            await tell("count_name", rows=self._rows("name", counts.names))
            await tell("count_word", rows=self._rows("word", counts.words), **shared)
            await tell("count_document", rows=self._rows("scope", counts.documents), **shared)

        return work

    def _all_written(self, entries: Sequence[Entry]) -> list[_Now]:
        return [self._written(entry.record) for entry in entries]

    def _written(self, record: Record) -> _Now:
        """A record as it is to be."""
        key, scope = self._document(record.key), Scope(record.tenant, record.environment)
        names, said = named(record), set(words(passage(record.document)))
        return _Now(
            key,
            scope,
            {"present": True, "words": said, "names": names},
            row={
                "key": key,
                "id": record.document.id,
                "scope": self._key(scope, "scope"),
                "labels": labels(fields(record)),
                "words": sorted(said),
                "facts": msgspec.json.encode(facts(record.document)).decode(),
            },
            mentions=[{"document": key, "key": self._key(scope, "name", name), "name": name} for name in sorted(names)],
            links=[
                {
                    "document": key,
                    "target": self._document((record.tenant, record.environment, each.target)),
                    "type": each.type,
                    "weight": strength(each),
                }
                for each in record.document.links
                if each.target != record.document.id
            ],
        )

    def _rows(self, kind: str, counts: Counter[tuple[Scope, str]]) -> list[Row]:
        """Sorted, so that two writers lock what they share in the same order."""
        changed = [
            {"key": self._key(scope, kind, *([text] if text else [])), "by": by}
            for (scope, text), by in counts.items()
            if by
        ]
        return sorted(changed, key=lambda row: str(row["key"]))

    def _key(self, scope: Scope, *parts: str) -> str:
        return fingerprint(self._name, scope.tenant, scope.environment, *parts)

    def _document(self, key: Key) -> str:
        tenant, environment, id_ = key
        return self._key(Scope(tenant, environment), "document", id_)


_NOTHING: Mapping[str, Any] = {"present": False, "version": 0, "words": [], "names": []}
"""What is held of a document that is not there."""


@dataclass(frozen=True, slots=True)
class _Now:
    """What a document is to be, made ready before the transaction: what it says, and the rows that say it.

    ``said`` is in the form in which the server tells what it holds; a document that is to go says nothing.
    """

    key: str
    scope: Scope
    said: Mapping[str, Any]
    row: Row = field(default_factory=dict)
    mentions: list[Row] = field(default_factory=list)
    links: list[Row] = field(default_factory=list)


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
