"""What identifies a document in its tenant and environment: its id and its collection, as one text."""

from __future__ import annotations

from collections.abc import Iterable

from fusion.values import DocId

DEFAULT_COLLECTION = "documents"
_MARK = "\x1f"
"""Between the id and the collection. Ids and names have no control characters."""


def doc_id(id_: str, collection: str) -> DocId:
    """The id, and the collection if it is not the default one. In order, the ids decide first."""
    return id_ if collection == DEFAULT_COLLECTION else f"{id_}{_MARK}{collection}"


def bare_ids(identities: Iterable[DocId]) -> list[str]:
    """The ids of what :func:`doc_id` returned, without their collections."""
    return [identity.partition(_MARK)[0] for identity in identities]


def id_and_collection(identity: DocId) -> tuple[str, str]:
    """The id and the collection of what :func:`doc_id` returned."""
    id_, _, collection = identity.partition(_MARK)
    return id_, collection or DEFAULT_COLLECTION
