"""Reading documents. Every method raises :class:`adapters.model.errors.AdapterError` and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from adapters.model.document import Document, Record, Scope
from adapters.model.filter import And, Eq, Filter, In, Or, normal
from adapters.model.protection import Protection
from fusion.columns import Documents
from fusion.values import DocId

MAX_PAGE_BYTES = 4_194_304
"""A page ends early if its documents have more bytes than this; it has at least one."""


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Some documents of a list.

    :param next: where the next page begins; ``None`` if there is none.
    """

    records: list[Record]
    next: str | None


MAX_PER_POSITION = 4
"""Documents that are read per chunk position, on average: there should be one, but there may be several."""


class ChunkPosition(NamedTuple):
    """Where a chunk is: ``chunk`` counts from 0, within the document ``parent_id`` of its collection."""

    collection: str
    parent_id: str
    chunk: int


def position_of(document: Document) -> ChunkPosition | None:
    """The position of a document; ``None`` if it is no chunk, or its position is unknown."""
    if document.parent_id is None or document.chunk_index is None:
        return None
    return ChunkPosition(document.collection, document.parent_id, document.chunk_index)


def at_positions(positions: Iterable[ChunkPosition], condition: Filter) -> Filter:
    """The chunks at these positions that pass ``condition``, in normal form."""
    indexes: dict[tuple[str, str], list[float]] = {}
    for collection, parent, index in positions:
        indexes.setdefault((collection, parent), []).append(float(index))
    chunks = Or(
        tuple(
            And((Eq("collection", collection), Eq("parent_id", parent), In("chunk_index", tuple(of_parent))))
            for (collection, parent), of_parent in indexes.items()
        )
    )
    return normal(And((condition, chunks)))


class DocumentFetcher(Protocol):
    """Documents by id, or by number."""

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[DocId, Record]:
        """The records that exist in a scope, by id; documents without one are left out."""
        ...


class ProtectionReader(Protocol):
    """The protection of documents, which decides which callers may replace them."""

    async def protections(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, Protection]:
        """The protections by id; ids without a document are left out."""
        ...


class DocumentFinder(Protocol):
    """Documents by filter."""

    async def find(self, condition: Filter, limit: int) -> list[Record]:
        """Returns at most ``limit`` documents that pass ``condition`` (in normal form), in any order."""
        ...

    async def chunk_ids(self, positions: Sequence[ChunkPosition], condition: Filter) -> Mapping[ChunkPosition, str]:
        """The ids of the chunks at these positions that pass ``condition`` (in normal form); of several, the smallest.

        A position without a chunk is left out.
        """
        ...

    async def page(self, condition: Filter, limit: int, start: str | None = None) -> DocumentPage:
        """The next documents that pass ``condition`` (in normal form), in a fixed order. A document that exists during
        all of the pages is on one of them.

        :param limit: maximum number of documents.
        :param start: ``next`` of the page before; another text is a place between two documents, too.
        """
        ...

    async def counts(self, field: str, condition: Filter) -> Mapping[str, int]:
        """The number of documents that pass ``condition`` (in normal form), by text value of a field."""
        ...


class DocumentSampler(Protocol):
    """Documents for measurements."""

    async def sample(self, count: int) -> list[Record]:
        """Returns at most ``count`` documents of all scopes, evenly chosen; the same ones until the next write."""
        ...


class DocumentReader(DocumentFetcher, ProtectionReader, DocumentFinder, DocumentSampler, Protocol):
    """The reading of documents from the source that stores them."""
