"""Records what is written, as long as there are generations that are not live."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from time import time

import anyio.to_thread

from adapters import Unavailable, Viewer
from adapters.model.protection import UNRESTRICTED
from adapters.ports import DocumentWriter, VectorRecord
from adapters.ports.replica import Key
from adapters.ports.writer import Acknowledgement
from orchestrator.indexing.generations.catalog import FIRST, Catalog, Generation
from orchestrator.indexing.generations.changes import ChangeRecord


class RecordedWriter:
    """A :class:`adapters.ports.DocumentWriter` of one generation, which only writes while that is live.

    :param index_name: the name of the first generation.
    :param settings: those that documents are prepared with, see :class:`Generation`. Those of the first generation are
        stored after the first write.
    """

    def __init__(self, writer: DocumentWriter, catalog: Catalog, index_name: str, settings: Mapping[str, str]) -> None:
        self._writer = writer
        self._catalog = catalog
        self._changes = ChangeRecord(catalog.folder)
        self._first = Generation(index_name, FIRST, settings, time())

    async def write(
        self, upserts: Sequence[VectorRecord], deletes: Iterable[Key], viewer: Viewer = UNRESTRICTED
    ) -> Acknowledgement:
        """See :class:`adapters.ports.DocumentWriter`.

        :raises Unavailable: if another generation has become live: this process uses it in a moment.
        """
        deleted = list(deletes)
        async with self.recording([*(each.record.key for each in upserts), *deleted]):
            return await self._writer.write(upserts, deleted, viewer)

    @asynccontextmanager
    async def recording(self, keys: Sequence[Key]) -> AsyncIterator[None]:
        """Inside, this generation stays live, and the keys are recorded.

        :raises Unavailable: as :meth:`write`.
        """
        if not os.access(self._catalog.folder.parent, os.W_OK):
            yield  # the writer says why nothing can be written
            return
        with ExitStack() as stack:
            is_known = await anyio.to_thread.run_sync(self._begin, stack, keys)
            yield
            if not is_known:
                await anyio.to_thread.run_sync(self._store_first)

    def _begin(self, stack: ExitStack, keys: Sequence[Key]) -> bool:
        """Returns whether the settings of this generation are stored."""
        try:
            stack.enter_context(self._catalog.writing())
        except OSError as error:
            raise Unavailable("the index cannot be written", f"{self._catalog.folder}: {error}") from error
        generations = self._catalog.read()
        if self._catalog.own_version() != generations.live:
            raise Unavailable("another generation of the index has become live: try again")
        if generations.others:
            self._changes.append(keys)
        return generations.get(generations.live) is not None

    def _store_first(self) -> None:
        """Store the settings of the first generation, after its first write."""
        self._catalog.update(lambda newest: newest if newest.get(FIRST) else newest.with_(self._first))
