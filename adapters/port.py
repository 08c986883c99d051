"""The ports: what the orchestrator asks of any backend. Each is one to three methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from adapters.document import Record, Scope
from adapters.filter import Filter
from fusion import DocId, Ranking

Centrality: TypeAlias = Literal["pagerank", "degree", "betweenness", "harmonic", "none"]
"""A measure by the name that networkx gives it."""

Vector: TypeAlias = npt.NDArray[np.float32]
"""Shape (dimension,), of unit length."""

Matrix: TypeAlias = npt.NDArray[np.float32]
"""Shape (count, dimension), rows of unit length."""


Key: TypeAlias = tuple[str, str, str]
"""(tenant, environment, id): what a document is known by."""


@dataclass(frozen=True, slots=True)
class Query:
    """What one source is asked.

    ``filter`` holds for every hit: scope, clearance and what the user asked. ``access`` is its first part alone
    (scope and clearance), because a graph walk may pass through what the user's filter hides, never through
    what the caller may not see. Both are in normal form. ``depth`` is how many hits at most. ``vector`` is what
    only the vector source needs. ``near`` is what only the graph source takes: documents that are known to be near
    the query, the best first, to walk from beside the names in its text. ``expansions`` is what only the keyword source
    takes: words and phrases that may stand for something in the text. ``remembered``: what a memory may do.
    """

    text: str
    depth: int
    scope: Scope
    access: Filter
    filter: Filter
    vector: Vector | None = None
    near: tuple[DocId, ...] = ()
    expansions: tuple[str, ...] = ()
    remembered: Literal["use", "refresh", "bypass"] = "use"


class Retriever(Protocol):
    """One source."""

    async def search(self, query: Query) -> Ranking:
        """The best ``query.depth`` documents, or fewer.

        :raises AdapterError: and nothing else.
        """
        ...


class RecordReader(Protocol):
    """Whoever can give a document by its id. Raises :class:`AdapterError` and nothing else."""

    async def fetch(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, Record]:
        """The records that exist, by id; the others are left out."""
        ...


class DocumentReader(RecordReader, Protocol):
    """Whoever holds the documents themselves, and can look among them."""

    async def find(self, wanted: Filter, limit: int) -> list[Record]:
        """At most ``limit`` documents that pass ``wanted`` (in normal form), in no order."""
        ...

    async def sample(self, count: int) -> list[Record]:
        """At most ``count`` documents from anywhere, in all scopes; the same ones while nothing is written."""
        ...

    async def counts(self, field: str, wanted: Filter) -> Mapping[str, int]:
        """How many documents that pass ``wanted`` (in normal form) have each text value of a field."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A record to store, with its vector."""

    record: Record
    vector: Vector


class Priors(Protocol):
    """What the graph knows without a walk."""

    async def names(self, query: Query) -> bool:
        """Whether the query names anything that it knows."""
        ...

    async def centralities(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, float]:
        """Global centrality in [0, 1] by id; documents without one are left out."""
        ...


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What became of a write: the generation that shows it, and who does not hold what of it, with the reason.

    ``missing``, by store: all of it, so far. It is not lost: it is on disk, and the store is given it when it can be
    reached again. ``refused``, by document and store: what a store will not have, so that it is not tried again.
    """

    generation: int
    missing: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[Key, Mapping[str, str]] = field(default_factory=dict)


class Writer(Protocol):
    """What takes documents. A call may be made again with the same effect."""

    async def write(self, upserts: Sequence[Entry], deletes: Iterable[Key]) -> Acknowledgement:
        """Add or replace, and delete.

        When this returns, the change is on disk, and every later search sees it in every store that is not missing.

        :raises AdapterError: if nothing was written.
        """
        ...


class Store(Protocol):
    """One of several copies of the documents, kept by a server of its own."""

    async def built(self) -> bool:
        """Whether there is an index.

        :raises VersionMismatch: if there is one that another encoder or analyser built.
        """
        ...

    async def prepare(self) -> None:
        """Make the index where there is none.

        :raises VersionMismatch: if there is one that another encoder or analyser built.
        :raises AdapterError: if the server cannot do it.
        """
        ...

    async def apply(self, version: int, upserts: Sequence[Entry], deletes: Sequence[Key]) -> None:
        """Add or replace, then delete; searches see it when this returns. Writes come in the order of their version.

        May be called again with what was applied before, wholly or in part: the outcome is the same.

        :raises AdapterError: if not all of it was applied.
        """
        ...

    async def count(self) -> int:
        """How many documents it holds, of all scopes."""
        ...

    async def close(self) -> None:
        """Give the connections back."""
        ...


class Server(Retriever, Store, Protocol):
    """A source that is its own store, on a server."""

    async def version(self) -> str:
        """What the server says it is: the cheapest question there is."""
        ...

    async def clock(self) -> float | None:
        """Its time in seconds since the epoch; ``None`` where it cannot be asked."""
        ...


class CentralityJob(Protocol):
    """A graph that computes and keeps its documents' centralities."""

    async def compute_centralities(self, measure: Centrality) -> None:
        """Compute by name, for all scopes; takes as long as it takes."""
        ...


class Expander(Protocol):
    """What else a query might have been called."""

    async def expand(self, text: str) -> tuple[str, ...]:
        """Words and phrases that may stand for something in ``text``, each once.

        :raises AdapterError: and nothing else.
        """
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """Passages by relevance, the best first: numbers from 0, and scores on the reranker's own scale, if it gave any.

    Each number stands once; what is not named is known to be neither better nor worse. ``unsound`` says what of the
    answer had to be left out; empty, if nothing had.
    """

    order: tuple[int, ...]
    scores: Mapping[int, float] = field(default_factory=dict)
    unsound: str = ""


class Reranker(Protocol):
    """What reads a query and passages together."""

    async def rerank(self, query: str, passages: Sequence[str]) -> Judgement:
        """Order the passages, of which there is one at least.

        :raises AdapterError: and nothing else.
        """
        ...


class QueryEncoder(Protocol):
    """Text of a query to a vector in the documents' space."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    async def encode(self, text: str) -> Vector:
        """A unit vector."""
        ...


class DocumentEncoder(Protocol):
    """Texts of documents to vectors. Blocks: call it off the event loop."""

    @property
    def identity(self) -> str:
        """Model, weights and recipe in one line: part of the index version."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """One unit row per text, in order; texts longer than the model's window are pooled, never refused."""
        ...
