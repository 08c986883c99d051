"""Makes another generation the live one, in one step."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import time

import anyio.to_thread
from msgspec.structs import replace

from adapters import Document, Scope, Unavailable
from adapters.model.batching import batches
from adapters.ports.replica import Key
from orchestrator.indexing.generations.catalog import Catalog, Generations
from orchestrator.indexing.generations.changes import ChangeRecord
from orchestrator.indexing.generations.stores import Stores, scope_of

_log = logging.getLogger(__name__)

_BATCH_CHANGES = 256
_FEW_CHANGES = 256
"""Changes that are written while all writers wait."""
_MAX_ROUNDS = 20
"""Attempts to catch up with writes that go on meanwhile."""


@dataclass(frozen=True, slots=True)
class Switch:
    """Brings a generation up to date, and makes it the live one. Everything is done inside :meth:`alone`.

    :param live_version: of the generation whose stores ``live`` are.
    """

    catalog: Catalog
    live: Stores
    live_version: int
    target: Stores
    version: int

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside, no other process brings a generation up to date or makes one live.

        :raises Unavailable: if another one does, or has just done it.
        """
        with self.catalog.switching() as is_alone:
            if not is_alone:
                raise Unavailable("another process brings a generation up to date or makes one live: try again")
            if self.catalog.read().live != self.live_version:
                raise Unavailable("another generation has just become live: try again")
            yield

    async def catch_up(self, is_without_writes: bool = False) -> int:
        """Write to the target what has changed since it was built, or was live. Returns the number of documents.

        :param is_without_writes: whether the caller keeps other processes from writing.
        :raises AdapterError: if a store does not answer; the next call goes on.
        """
        changes = ChangeRecord(self.catalog.folder)
        generation = (await anyio.to_thread.run_sync(self.catalog.read)).require(self.version)
        end = await anyio.to_thread.run_sync(changes.end if is_without_writes else self._end_of_complete_writes)
        keys = await anyio.to_thread.run_sync(changes.keys, generation.changes_end, end)
        await self.live.settle()
        if self.live.embedded:
            await anyio.to_thread.run_sync(self.live.embedded.index.refresh)
        self.target.continue_after(self.live)
        for batch in batches(keys, _BATCH_CHANGES):
            await self._copy(batch)
        if end != generation.changes_end:
            await anyio.to_thread.run_sync(
                self.catalog.update,
                lambda known: known.with_(replace(known.require(self.version), changes_end=end)),
            )
        return len(keys)

    def _end_of_complete_writes(self) -> int:
        """Where the record ends; the writes up to there are complete, so that the stores show them."""
        with self.catalog.without_writes():
            return ChangeRecord(self.catalog.folder).end()

    def pending(self) -> int:
        """Number of documents that have changed since the target was brought up to date. Blocks."""
        changes = ChangeRecord(self.catalog.folder)
        return len(changes.keys(self.catalog.read().require(self.version).changes_end, changes.end()))

    async def _copy(self, keys: Sequence[Key]) -> None:
        """Make these documents as they are in the live generation, or delete them if they do not fit any more."""
        documents: list[tuple[Scope, Document]] = []
        fitting: set[Key] = set()
        for key, record in (await self.live.newest(keys)).items():
            if problem := self.target.pipeline.vector_problem(document := record.whole):
                _log.error("%s: a changed document is not in the other generation: %s", record.doc_id, problem)
                continue
            documents.append((scope_of(record), document))
            fitting.add(key)
        prepared = await self.target.prepare(documents)
        await self.target.write(prepared, [key for key in keys if key not in fitting])

    async def run(self) -> None:
        """Catch up, and switch in one step, in which nothing is written.

        :raises Unavailable: if writes go on faster than they can be copied.
        """
        for _ in range(_MAX_ROUNDS):
            if await self.catch_up() <= _FEW_CHANGES:
                break
        else:
            raise Unavailable("documents are written faster than they can be copied: try again later")
        with ExitStack() as stack:
            await anyio.to_thread.run_sync(stack.enter_context, self.catalog.without_writes())
            await self.catch_up(is_without_writes=True)
            await anyio.to_thread.run_sync(self.catalog.update, self._switched)

    def _switched(self, known: Generations) -> Generations:
        end = ChangeRecord(self.catalog.folder).end()
        target = replace(known.require(self.version), left_at=None)
        if target.state != "complete":
            raise Unavailable(f"{target.name} is {target.state}: it cannot become live")
        if before := known.get(known.live):
            known = known.with_(replace(before, left_at=time(), changes_end=end))
        return replace(known.with_(target), live=self.version)
