"""Writes the parts of all shards to the stores of a new generation, in the order of the documents.

The writes are the same whatever the number of shards is, and however often the process was killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from pathlib import Path

import anyio.to_thread
import msgspec

from adapters.ports import VectorRecord
from adapters.storage import checked_file, files
from orchestrator.indexing.generations.origins import Rejected
from orchestrator.indexing.generations.parts import ShardParts
from orchestrator.indexing.generations.stores import Stores
from orchestrator.indexing.pipeline import size_bytes

_MAX_WRITE_BYTES = 67_108_864


class _Written(msgspec.Struct, frozen=True):
    """How much is written.

    :param last: the number of the last document, and its shard.
    :param generation: of the embedded index after that.
    """

    last: tuple[int, int] = (-1, -1)
    writes: int = 0
    generation: int = 0


class Assembly:
    """Writes parts.

    :param folder: where its progress is stored.
    :param shards: the parts of each shard.
    :param batch: maximum number of documents of a write.
    """

    def __init__(self, folder: Path, shards: Sequence[ShardParts], target: Stores, batch: int) -> None:
        self._path = folder / "written"
        self._folder = folder
        self._shards = shards
        self._target = target
        self._batch = batch

    async def run(self, is_last: bool) -> None:
        """Write what is there in full batches; the rest, too, if there will be no more.

        :raises Unavailable: if a server does not answer; the next call goes on.
        """
        written = await anyio.to_thread.run_sync(self._read)
        items = self._items(written.last)
        while batch := await anyio.to_thread.run_sync(self._next, items, is_last):
            # The number of a commit tells whether a process wrote this batch and was killed before it could say so.
            if self._generation() == written.generation:
                refused = await self._target.write([each for _, each in batch])
                await anyio.to_thread.run_sync(self._store_refused, written.writes, refused)
            written = _Written(batch[-1][0], written.writes + 1, self._generation())
            await anyio.to_thread.run_sync(self._store, written)

    def _generation(self) -> int:
        """Of the embedded index, if it is the only store: servers may have a document written twice."""
        embedded = self._target.embedded
        return 0 if embedded is None or self._target.replication else embedded.index.generation()

    def _read(self) -> _Written:
        try:
            return checked_file.read_json(self._path, _Written)
        except FileNotFoundError:
            first = _Written(generation=self._generation())
            checked_file.write_json(self._path, first)
            return first

    def _store(self, written: _Written) -> None:
        checked_file.write_json(self._path, written)
        ordinal, shard = written.last
        for number, parts in enumerate(self._shards):
            parts.remove(ordinal if number <= shard else ordinal - 1)

    def _items(self, last: tuple[int, int]) -> Iterator[tuple[tuple[int, int], VectorRecord]]:
        def of_shard(number: int) -> Iterator[tuple[tuple[int, int], VectorRecord]]:
            return (((ordinal, number), each) for ordinal, each in self._shards[number].items())

        merged = merge(*map(of_shard, range(len(self._shards))), key=lambda item: item[0])
        return (item for item in merged if item[0] > last)

    def _next(
        self, items: Iterator[tuple[tuple[int, int], VectorRecord]], is_last: bool
    ) -> list[tuple[tuple[int, int], VectorRecord]]:
        """The next batch; empty if it is not full, and more will come."""
        batch, size = [], 0
        for item in islice(items, self._batch):
            batch.append(item)
            size += size_bytes(item[1].record.document)
            if size >= _MAX_WRITE_BYTES:
                return batch
        return batch if is_last or len(batch) == self._batch else []

    def _store_refused(self, number: int, refused: dict[tuple[str, str, str], str]) -> None:
        if refused:
            lines = (msgspec.json.encode(Rejected(reason, id=key[-1])) + b"\n" for key, reason in refused.items())
            files.replace(self._folder / f"{number:08d}.rejected", b"".join(lines), mode=0o600)

    def rejected(self) -> Iterator[bytes]:
        """The lines of the documents that are not in the new generation. Blocks."""
        for parts in self._shards:
            yield from parts.rejected()
        for path in sorted(self._folder.glob("*.rejected")):
            yield path.read_bytes()
