"""A corpus in two collections: a search covers every collection by default, so benchmarks have more than one."""

from __future__ import annotations

from zlib import crc32

import msgspec

from adapters import Document
from fusion.doc_ids import DEFAULT_COLLECTION

NAMES = (DEFAULT_COLLECTION, "notes")


def collection_of(id_: str) -> str:
    """The collection of the document of an id: half of them are in each."""
    return NAMES[crc32(id_.encode()) % len(NAMES)]


def in_two_collections(document: Document) -> Document:
    """The same document in its collection, with links to those of the other one."""
    links = tuple(
        msgspec.structs.replace(each, target_collection=collection_of(each.target)) for each in document.links
    )
    return msgspec.structs.replace(document, collection=collection_of(document.id), links=links)
