"""Pins one state of the index for a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adapters import Scope
from adapters.ports import DocumentFetcher, SearchedDocuments, Snapshot
from orchestrator.indexing.data_version import DataVersions


class IndexSnapshots:
    """See :class:`adapters.ports.Snapshots`.

    :param generation: of the newest write that searches see.
    :param view: the open commit of the embedded engine; ``None`` without one. It is pinned by being referenced.
    :param documents: reads documents, if not from that commit.
    :param has_servers: whether a source or the documents are on a server, which has no old states.
    :param copies: see :class:`adapters.Snapshot`.
    """

    def __init__(
        self,
        data_versions: DataVersions,
        generation: Callable[[], int],
        view: Callable[[], SearchedDocuments | None],
        documents: SearchedDocuments | None,
        has_servers: bool,
        copies: Sequence[DocumentFetcher] = (),
    ) -> None:
        self._data_versions = data_versions
        self._generation = generation
        self._view = view
        self._documents = documents
        self._has_servers = has_servers
        self._copies = copies

    def pin(self, scope: Scope) -> Snapshot:
        """See :class:`adapters.ports.Snapshots`."""
        while True:
            view = self._view()
            generation, data_version = self._generation(), self._data_versions.current(scope)
            if self._view() is view:  # otherwise another thread has committed in between
                break
        documents = self._documents or view
        if documents is None:
            raise ValueError("a snapshot needs documents: neither a reader nor a view was given")
        return Snapshot(scope, generation, data_version, documents, view, self._copies)

    def changed(self, snapshot: Snapshot) -> bool:
        """See :class:`adapters.ports.Snapshots`."""
        return self._has_servers and self._data_versions.current(snapshot.scope) != snapshot.data_version
