"""Combines small writes that wait at the same time into one: a commit costs much more than a document."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from adapters import Unavailable, Viewer
from adapters.model.protection import UNRESTRICTED
from adapters.ports import DocumentWriter, VectorRecord
from adapters.ports.replica import Key
from adapters.ports.writer import Acknowledgement

_MAX_DOCUMENTS = 1_000
"""Maximum number of documents of several writes that are combined."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A write that has not begun."""

    upserts: Sequence[VectorRecord]
    deletes: list[Key]
    viewer: Viewer
    outcome: asyncio.Future[Acknowledgement] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def keys(self) -> set[Key]:
        return {*(each.record.key for each in self.upserts), *self.deletes}


class GroupedWriter:
    """A :class:`adapters.ports.DocumentWriter` that passes on one write at a time.

    While it runs, others wait, and go together in the next one. The last of several writes of one document counts.
    """

    def __init__(self, writer: DocumentWriter) -> None:
        self._writer = writer
        self._waiting: deque[_Waiting] = deque()
        self._lock = asyncio.Lock()

    async def write(
        self, upserts: Sequence[VectorRecord], deletes: Iterable[Key], viewer: Viewer = UNRESTRICTED
    ) -> Acknowledgement:
        """See :class:`adapters.ports.DocumentWriter`."""
        own = _Waiting(upserts, list(deletes), viewer)
        self._waiting.append(own)
        try:
            async with self._lock:
                if not own.outcome.done():
                    await self._write(self._next_group())
        except asyncio.CancelledError:
            if own in self._waiting:
                self._waiting.remove(own)
            raise
        return own.outcome.result()

    def _next_group(self) -> list[_Waiting]:
        """The oldest write, and those after it that can be combined with it."""
        group = [self._waiting.popleft()]
        count = len(group[0].keys)
        while self._waiting and self._waiting[0].viewer == group[0].viewer:
            count += len(self._waiting[0].keys)
            if count > _MAX_DOCUMENTS:
                break
            group.append(self._waiting.popleft())
        return group

    async def _write(self, group: Sequence[_Waiting]) -> None:
        """Write a group, and set the outcome of each of its writes."""
        newest: dict[Key, VectorRecord | None] = {}
        for each in group:
            newest |= dict.fromkeys(each.deletes)
            newest |= {upsert.record.key: upsert for upsert in each.upserts}
        upserts = [each for each in newest.values() if each is not None]
        deletes = [key for key, each in newest.items() if each is None]
        try:
            acknowledgement = await self._writer.write(upserts, deletes, group[0].viewer)
        except BaseException as error:
            failure = error if isinstance(error, Exception) else Unavailable("the write was interrupted: try it again")
            for each in group:
                each.outcome.set_exception(failure)
                each.outcome.exception()  # read, so that a caller that has left is no error
            if not isinstance(error, Exception):
                raise
            return
        for each in group:
            each.outcome.set_result(_part(acknowledgement, each.keys))


def _part(acknowledgement: Acknowledgement, keys: set[Key]) -> Acknowledgement:
    """What an acknowledgement says about some documents."""
    rejected = {key: reasons for key, reasons in acknowledgement.rejected.items() if key in keys}
    hidden = None if acknowledgement.hidden is None else acknowledgement.hidden & keys
    return replace(acknowledgement, rejected=rejected, hidden=hidden, absent=acknowledgement.absent & keys)
