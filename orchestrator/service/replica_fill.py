"""Gives a server the documents that other replicas have: after a source was moved to it, or after it lost them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice

import anyio.to_thread

from adapters import Unavailable
from adapters.model.filter import EVERYTHING
from adapters.model.spelling import allowed_names
from adapters.ports import VectorRecord
from orchestrator.indexing.generations.stores import Stores, scope_of
from orchestrator.indexing.log.write_log import store_name
from orchestrator.planning.errors import BadRequest

_BATCH_DOCUMENTS = 256
"""Documents that are read, and written, together."""


@dataclass(frozen=True, slots=True)
class ReplicaFill:
    """Writes the documents of one replica to others.

    :param stores: all of them.
    """

    stores: Stores

    async def run(
        self,
        source: str | None,
        stored: Callable[[], Iterator[VectorRecord]] | None,
        progress: Callable[[str], AbstractContextManager[Callable[[int], None]]],
    ) -> Mapping[str, int]:
        """Fill the servers that lack documents, or that of one source. Returns the documents written, by source.

        Writes that arrive meanwhile are applied to a server after it is filled.

        :param stored: the documents of an index in the data folder that is no replica any more: it is read if all
            servers are empty.
        :param progress: of a source: a function that is called with the documents written since its last call.
        :raises BadRequest: if the source is not on a server.
        :raises AdapterError: if a server cannot be filled; those before it are.
        """
        replication = self.stores.replication
        if replication is None:
            raise BadRequest("no source is on a server: there is nothing to fill")
        origin = replication.documents_replica
        names = {
            store_name(name): name for name in replication.replicas if not (self.stores.embedded and name == origin)
        }
        if source is not None and source not in names:
            raise BadRequest(f"{source[:80]!r} is no source on a server, {allowed_names(source, names)}")
        await replication.create_missing()
        await replication.apply_unapplied()
        counts = await replication.counts()
        is_empty = not any(count for count in counts.values() if isinstance(count, int))
        written: dict[str, int] = {}
        for each in [source] if source else names:
            if source or _lacks(each, counts[names[each]], counts, has_more=is_empty and stored is not None):
                if names[each] == origin and not (is_empty and stored):
                    raise Unavailable(f"{each} is where documents are read from: index them again with `trivium index`")
                records = self._batches(stored if is_empty else None)
                with progress(each) as advance:
                    written[each] = await replication.fill(names[each], records, advance)
                await self.stores.data_versions.advance((), all_scopes=True)
        return written

    async def _batches(self, stored: Callable[[], Iterator[VectorRecord]] | None) -> AsyncIterator[list[VectorRecord]]:
        """All documents, from the embedded index, from ``stored``, or from the replica that documents are read from."""
        if self.stores.embedded is not None:
            stored = self.stores.embedded.index.current().records_with_vectors
        if stored is not None:
            records = stored()
            while batch := await anyio.to_thread.run_sync(lambda: list(islice(records, _BATCH_DOCUMENTS))):
                yield batch
            return
        start: str | None = None
        while True:
            page = await self.stores.documents.page(EVERYTHING, _BATCH_DOCUMENTS, start)
            encoded = await self.stores.prepare([(scope_of(record), record.whole) for record in page.records])
            yield [VectorRecord(record, each.vectors) for record, each in zip(page.records, encoded, strict=True)]
            if page.next is None:
                return
            start = page.next


def _lacks(source: str, count: int | str, counts: Mapping[str, int | str], has_more: bool) -> bool:
    if isinstance(count, str):
        raise Unavailable(f"{source} cannot be filled: {count}")
    return has_more or count < max(each for each in counts.values() if isinstance(each, int))
