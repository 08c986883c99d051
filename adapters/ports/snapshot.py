"""One state of the index, pinned for all stages of a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from adapters.model.document import Scope
from adapters.ports.documents import DocumentFetcher, DocumentReader
from adapters.ports.listing import DocumentLister


class SearchedDocuments(DocumentReader, DocumentLister, Protocol):
    """The store of the documents that searches read."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state that one request reads.

    The embedded engine is pinned exactly: ``documents`` and every embedded source read the state ``view``. Servers
    store one state only, so their documents can change while a request runs; :meth:`Snapshots.changed` reports that.

    :param generation: number of the newest write that searches may find.
    :param data_version: differs whenever the documents of the scope may differ; contained in every cache key.
    :param view: the open commit of the embedded engine; ``None`` if all sources are on servers.
    :param copies: other stores of the documents, by priority: each is read if those before it are unavailable.
    """

    scope: Scope
    generation: int
    data_version: tuple[str | int, ...]
    documents: SearchedDocuments
    view: object | None = None
    copies: Sequence[DocumentFetcher] = ()


class Snapshots(Protocol):
    """Pins the current state."""

    def pin(self, scope: Scope) -> Snapshot:
        """The newest state that this process knows; it stays readable for as long as it is referenced."""
        ...

    def changed(self, snapshot: Snapshot) -> bool:
        """Whether a write to the snapshot's scope may have become visible in one of its sources since it was pinned."""
        ...
