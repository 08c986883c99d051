"""The ports: what the orchestrator asks of any backend. Each is one to three methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from adapters.document import Record, Scope
from adapters.filter import Filter
from fusion import DocId, Ranking

Vector: TypeAlias = npt.NDArray[np.float32]
"""Shape (dimension,), of unit length."""

Matrix: TypeAlias = npt.NDArray[np.float32]
"""Shape (count, dimension), rows of unit length."""


@dataclass(frozen=True, slots=True)
class Query:
    """What one source is asked.

    ``filter`` holds for every hit: scope, clearance and what the user asked. ``access`` is its first part alone
    (scope and clearance), because a graph walk may pass through what the user's filter hides, never through
    what the caller may not see. Both are in normal form. ``depth`` is how many hits at most. ``vector`` is what
    only the vector source needs.
    """

    text: str
    depth: int
    scope: Scope
    access: Filter
    filter: Filter
    vector: Vector | None = None


class Retriever(Protocol):
    """One source."""

    async def search(self, query: Query) -> Ranking:
        """The best ``query.depth`` documents, or fewer.

        :raises AdapterError: and nothing else.
        """
        ...


class DocumentReader(Protocol):
    """Whoever holds the documents themselves."""

    async def fetch(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, Record]:
        """The records that exist, by id; the others are left out."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A record to store, with its vector."""

    record: Record
    vector: Vector


class Priors(Protocol):
    """What is known of documents before anybody asks."""

    async def centralities(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, float]:
        """Global centrality in [0, 1] by id; documents without one are left out."""
        ...


class Writer(Protocol):
    """A store that takes documents. A call is all or nothing, and may be made again with the same effect."""

    async def write(self, upserts: Sequence[Entry], deletes: Iterable[tuple[str, str, str]]) -> int:
        """Add or replace, and delete by (tenant, environment, id); the store's generation that shows it.

        When this returns, the change is on disk and every later search of this process sees it.
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
