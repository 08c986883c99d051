"""The port of a source, and its query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from adapters.model.document import Scope
from adapters.model.filter import Filter
from adapters.model.term_score import TermScore
from adapters.ports.encoders import Vector
from adapters.ports.snapshot import Snapshot
from fusion.columns import Documents, Ranking
from fusion.values import DocId


class SourceQuery(Struct, frozen=True):
    """One search of one source.

    :param depth: maximum number of documents to return.
    :param access: scope and clearance of the principal, in normal form. It is separate from ``filter`` because a graph
        walk may pass through documents that the request's filter excludes, never through documents that the principal
        may not see.
    :param filter: every returned document passes it: scope, clearance, and the request's own filter. Normal form.
    :param vector: of the query; only the vector source reads it.
    :param seeds: documents to start from beside the entities of the text, best first; only the graph source reads it.
    :param hops: maximum distance from a name in the text or from a seed, in documents that shared names or links
        connect; ``None`` for the default of a fusion with other sources. Only the graph source reads it.
    :param expansions: synonyms of words and phrases of the text; only the keyword source reads it.
    :param snapshot: the state of the index to search; ``None`` is the newest one.
    """

    text: str
    depth: int
    scope: Scope
    access: Filter
    filter: Filter
    vector: Vector | None = None
    seeds: Documents | None = None
    hops: int | None = None
    expansions: tuple[str, ...] = ()
    snapshot: Snapshot | None = None

    @property
    def seed_ids(self) -> tuple[DocId, ...]:
        """The ids of the seeds, best first."""
        return self.seeds.ids if self.seeds else ()


class ImmediateRetriever(Protocol):
    """A source in this process, whose search waits for nothing."""

    def search_now(self, query: SourceQuery) -> Ranking:
        """The best ``query.depth`` documents, or fewer.

        :raises AdapterError: and nothing else.
        """
        ...


class Retriever(Protocol):
    """One source."""

    async def search(self, query: SourceQuery) -> Ranking:
        """The best ``query.depth`` documents, or fewer.

        :raises AdapterError: and nothing else.
        """
        ...


class TermScorer(Protocol):
    """Why documents have their scores."""

    async def term_scores(self, query: SourceQuery, ids: Sequence[DocId]) -> Mapping[DocId, Sequence[TermScore]]:
        """The terms of a query that documents have, and what each adds to the score, the best first.

        :param ids: of documents that the caller may see; those without a term of the query are left out.
        :raises AdapterError: and nothing else.
        """
        ...
