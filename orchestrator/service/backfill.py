"""Builds a generation beside the live one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import anyio.to_thread
from msgspec.structs import replace

from adapters import Unavailable
from adapters.ports import VectorRecord
from adapters.storage import files
from orchestrator.indexing.generations.assembly import Assembly
from orchestrator.indexing.generations.catalog import BUILDING, Catalog, Generation
from orchestrator.indexing.generations.origins import Item, Origin, Place, Reading, Rejected, Shard
from orchestrator.indexing.generations.parts import Progress, ShardParts
from orchestrator.indexing.generations.stores import Stores

_PROBE_DOCUMENTS = 256
_REJECTED = "rejected.ndjson"


def rejected_documents(folder: Path) -> int:
    """Number of the documents that a generation lacks since it was built. Blocks.

    :param folder: of the generation.
    """
    path = folder / _REJECTED
    return path.read_bytes().count(b"\n") if path.exists() else 0


class Probe(NamedTuple):
    """What a backfill would write, by a sample.

    :param documents: that would be read.
    :param encoded: documents that were encoded for the estimate; 0 if their vectors can be copied.
    :param seconds: to encode all of them.
    :param vector_bytes: of the vectors of all of them.
    """

    documents: int
    encoded: int
    seconds: float
    vector_bytes: int


@dataclass(frozen=True, slots=True)
class Backfill:
    """The work on one generation. Any number of processes may have one.

    :param generation: as it was when the process began.
    :param source: the stores of the generation that was live when it was begun.
    :param target: those of the new one.
    """

    catalog: Catalog
    generation: Generation
    origin: Origin
    source: Stores
    target: Stores

    @property
    def folder(self) -> Path:
        """Where progress and encoded documents are stored."""
        return self.catalog.folder_of(self.generation) / BUILDING

    def parts(self) -> list[ShardParts]:
        """The parts of each shard."""
        return [ShardParts(self.folder / f"shard-{number}") for number in range(self.generation.shards)]

    def progress(self) -> list[Progress]:
        """How far each shard has read. Blocks."""
        return [parts.progress for parts in self.parts()]

    def working(self, name: str) -> AbstractContextManager[bool]:
        """Whether this process may do some work now: one process at a time may."""
        files.ensure_folder(self.folder)
        return files.exclusive_now(self.folder / f"{name}.lock")

    def writing(self) -> AbstractContextManager[None]:
        """Inside, this process alone writes what all shards have encoded. Entering it waits for another process."""
        files.ensure_folder(self.folder)
        return files.exclusive(self.folder / "writing.lock")

    async def encode(self, shard: Shard, on_progress: Callable[[int], None]) -> None:
        """Read and encode the documents of a shard, from where it was interrupted.

        :param on_progress: called with the number of documents that were read since the last call.
        :raises AdapterError: if documents cannot be read or encoded; what was encoded stays.
        """
        parts = self.parts()[shard.number]
        progress = await anyio.to_thread.run_sync(lambda: parts.progress)
        on_progress(progress.documents + progress.rejected)
        if progress.next is None:
            return
        self.target.continue_after(self.source)
        waiting = 0
        async for reading in self.origin.read(shard, progress.next):
            items, rejected = await self._prepared(reading)
            await anyio.to_thread.run_sync(parts.add, items, rejected, reading.next)
            on_progress(len(items) + len(rejected))
            waiting += len(items)
            if shard.shards == 1 and waiting >= self.generation.batch:
                await self._assembly().run(is_last=False)
                waiting = 0

    async def _prepared(self, reading: Reading) -> tuple[list[tuple[int, VectorRecord]], list[Rejected]]:
        rejected, items = list(reading.rejected), []
        for item in reading.items:
            if problem := self.target.pipeline.vector_problem(item.document):
                rejected.append(Rejected.of(problem, id=item.document.id))
            else:
                items.append(item)
        if self._copies_vectors:
            return [(item.ordinal, item.stored) for item in items if item.stored], rejected
        prepared = await self.target.prepare([(item.scope, item.document) for item in items])
        return [(item.ordinal, each) for item, each in zip(items, prepared, strict=True)], rejected

    @property
    def _copies_vectors(self) -> bool:
        """Whether the stored vectors are those of the new generation."""
        is_stored = not self.generation.origin and self.source.embedded is not None
        return is_stored and self.source.preparation == self.target.preparation

    def _assembly(self) -> Assembly:
        return Assembly(self.folder, self.parts(), self.target, self.generation.batch)

    async def assemble(self) -> int:
        """Write what all shards have encoded, and mark the generation as complete. Returns the rejected documents.

        :raises Unavailable: if a shard is not complete, or a server does not answer.
        """
        progress = await anyio.to_thread.run_sync(self.progress)
        if missing := [str(number) for number, each in enumerate(progress) if each.next]:
            raise Unavailable(f"not encoded yet: shard {', '.join(missing)} of {len(progress)}, from 0")
        self.target.continue_after(self.source)
        assembly = self._assembly()
        await assembly.run(is_last=True)
        lines = await anyio.to_thread.run_sync(lambda: b"".join(assembly.rejected()))
        await anyio.to_thread.run_sync(files.replace, self.rejected_path, lines, 0o600)
        return lines.count(b"\n")

    @property
    def rejected_path(self) -> Path:
        """The file with the documents that are not in the new generation."""
        return self.catalog.folder_of(self.generation) / _REJECTED

    def is_written(self) -> bool:
        """Whether the generation is complete, by this process or another one. Blocks."""
        return self.catalog.read().require(self.generation.version).state == "complete"

    def complete(self) -> None:
        """Mark the generation as complete: it may become live. Blocks."""
        self.catalog.update(
            lambda known: known.with_(replace(known.require(self.generation.version), state="complete"))
        )

    async def probe(self) -> Probe:
        """Encode a few documents, to estimate the whole. Nothing is written."""
        total = await self.origin.total()
        items: list[Item] = []
        async for reading in self.origin.read(Shard(0, 1), Place()):
            items += reading.items
            if len(items) >= _PROBE_DOCUMENTS or reading.next is None:
                break
        start = perf_counter()
        if self._copies_vectors:
            prepared = [item.stored for item in items if item.stored]
        else:
            prepared = await self.target.prepare([(item.scope, item.document) for item in items])
        factor = total / max(len(items), 1)
        vectors = sum(each.vectors.nbytes for each in prepared)
        seconds = (perf_counter() - start) * factor
        return Probe(total, 0 if self._copies_vectors else len(items), seconds, int(vectors * factor))
