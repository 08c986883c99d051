"""``/v1/documents`` and ``/v1/collections``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from adapters.model.document import Document
from adapters.model.filter import Filter
from adapters.model.protection import Sensitivity


class LineOutcome(Struct, frozen=True, omit_defaults=True):
    """The outcome of one line of a bulk request; lines count from 1.

    ``pending``: the write is durable, and applied when the replica that documents are read from is available again;
    whether the id belongs to a document that the writer may not see, which is not replaced, is known only then.
    ``incomplete``: the write is durable, and ``missing`` names each replica that does not have the document, with the
    reason. The write is applied later to a replica that was unavailable; a document that a replica refused is not
    retried.
    """

    line: int
    status: Literal["indexed", "pending", "incomplete", "rejected"]
    id: str | None = None
    error: str | None = None
    missing: Mapping[str, str] = {}


class BulkResponse(Struct, frozen=True, omit_defaults=True):
    """The response to ``POST /v1/documents``: valid lines are stored, invalid lines between them are reported.

    :param deleted: chunks that were deleted, with `replace=children`.
    :param unlisted: rejected lines that ``lines`` does not list, because there are more than a thousand.
    """

    indexed: int
    pending: int
    incomplete: int
    rejected: int
    generation: int
    lines: tuple[LineOutcome, ...]
    deleted: int = 0
    unlisted: int = 0


class DeleteResponse(Struct, frozen=True, omit_defaults=True):
    """The response to ``DELETE /v1/documents/{id}``; ``missing`` as in :class:`LineOutcome`.

    :param chunks: number of chunks of the document that were deleted with it.
    :param deleted: ``None`` if the delete is durable, but it is not known whether there was a document that the
        principal may delete: the documents could not be read, or earlier writes were not applied to them yet.
    """

    id: str
    deleted: bool | None
    generation: int
    missing: Mapping[str, str] = {}
    chunks: int = 0


class DeleteManyRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """``DELETE /v1/documents``: the condition on the documents to delete, as in a search."""

    filter: Filter


class DeleteManyResponse(Struct, frozen=True, omit_defaults=True):
    """The response to ``DELETE /v1/documents`` and ``DELETE /v1/collections/{name}``.

    :param matched: documents that the principal may see and that match.
    :param deleted: of these; 0 if it was a dry run.
    :param missing: as in :class:`LineOutcome`.
    """

    matched: int
    deleted: int
    generation: int
    missing: Mapping[str, str] = {}


class DocumentsResponse(Struct, frozen=True, omit_defaults=True):
    """The response to ``GET /v1/documents``.

    :param next_cursor: of the next page; not there on the last one.
    """

    documents: tuple[Document, ...]
    next_cursor: str | None = None


class NeighborDocument(Struct, frozen=True):
    """A document in a neighborhood."""

    id: str
    collection: str
    title: str
    sensitivity: Sensitivity


class NeighborName(Struct, frozen=True):
    """A name in its normal form, and the number of documents that mention it and that the principal may see."""

    name: str
    documents: int


class NeighborLink(Struct, frozen=True):
    """A link between two documents of a neighborhood; both are positions in its ``documents``, from 0."""

    source: int
    target: int
    type: str


class NeighborMention(Struct, frozen=True):
    """A document that mentions a name: their positions in ``documents`` and ``names`` of a neighborhood, from 0."""

    document: int
    name: int


class NeighborsResponse(Struct, frozen=True):
    """The response to ``GET /v1/documents/{id}/neighbors``: the document itself first, then those that it links to or
    that link to it, then others that mention its names.

    :param omitted: linked documents, and names of the document, that are left out because of the limit.
    """

    documents: tuple[NeighborDocument, ...]
    names: tuple[NeighborName, ...]
    links: tuple[NeighborLink, ...]
    mentions: tuple[NeighborMention, ...]
    omitted: int


class CollectionCount(Struct, frozen=True):
    """A collection, and the number of its documents that the principal may see."""

    name: str
    documents: int


class CollectionsResponse(Struct, frozen=True, omit_defaults=True):
    """The response to ``GET /v1/collections``.

    :param unlisted: collections that are not listed, the smallest, because there are more than 10,000.
    """

    collections: tuple[CollectionCount, ...]
    unlisted: int = 0
