"""What a generation is built from: the documents of the live one, or files. Each shard reads its part of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar
from zlib import crc32

import anyio.to_thread
import msgspec
import numpy as np
import numpy.typing as npt

from adapters import Document, Scope
from adapters.model.filter import EVERYTHING
from adapters.ports import VectorRecord
from fusion.rank_fields import Ints
from orchestrator.indexing.corpus import corpus_file, count_lines, parse_corpus
from orchestrator.indexing.generations.stores import Stores, scope_of
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine, parse_ndjson
from orchestrator.indexing.pipeline import MAX_BATCH_BYTES, MAX_BATCH_DOCUMENTS, size_bytes

T = TypeVar("T")

_BLOCK = 256
"""Consecutive documents that belong to the same shard."""


class Shard(NamedTuple):
    """One of ``shards`` processes that share the work; ``number`` counts from 0."""

    number: int
    shards: int

    def has(self, ordinal: int) -> bool:
        """Whether a document belongs to this shard."""
        return ordinal // _BLOCK % self.shards == self.number


class Rejected(msgspec.Struct, frozen=True):
    """A document that is not in the new generation: where it is in a file, or its id; and why."""

    reason: str
    file: str = ""
    line: int = 0
    id: str = ""
    field: str = ""

    @classmethod
    def of(cls, reason: str, file: str = "", line: int = 0, id: str = "") -> Rejected:
        """With the field that the reason begins with, if it begins with one."""
        name, separator, _ = reason.partition(": ")
        return cls(reason, file, line, id, name if separator and name.isidentifier() else "")


class Place(msgspec.Struct, frozen=True):
    """Where reading goes on: the smallest number of the next documents, and the next page of a server."""

    ordinal: int = 0
    page: str | None = None


class Item(NamedTuple):
    """One document. The numbers of a shard increase.

    :param stored: with its vectors, if they are stored.
    """

    ordinal: int
    scope: Scope
    document: Document
    stored: VectorRecord | None = None


class Reading(NamedTuple):
    """Some documents, and where those after them begin; ``None`` after the last."""

    items: Sequence[Item]
    rejected: Sequence[Rejected]
    next: Place | None


class Origin(Protocol):
    """What a generation is built from."""

    async def total(self) -> int:
        """Number of documents, of all shards."""
        ...

    def read(self, shard: Shard, start: Place) -> AsyncIterator[Reading]:
        """The documents of a shard from a place on, as many at once as are encoded together.

        The last reading has no next place. After a restart, all documents that existed all the time are read.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoredDocuments:
    """The documents of a generation."""

    stores: Stores

    async def total(self) -> int:
        """See :class:`Origin`."""
        if self.stores.embedded:
            return self.stores.embedded.documents()
        return sum((await self.stores.documents.counts("collection", EVERYTHING)).values())

    async def read(self, shard: Shard, start: Place) -> AsyncIterator[Reading]:
        """See :class:`Origin`."""
        await self.stores.settle()
        readings = self._pages(shard, start) if self.stores.embedded is None else self._rows(shard, start)
        async for reading in readings:
            yield reading

    async def _rows(self, shard: Shard, start: Place) -> AsyncIterator[Reading]:
        """From the embedded index, by its numbers of documents."""
        if self.stores.embedded is None:
            raise ValueError("there is no embedded index")
        view = self.stores.embedded.index.current()

        def chosen(docnos: Ints) -> npt.NDArray[np.bool_]:
            own: npt.NDArray[np.bool_] = docnos // _BLOCK % shard.shards == shard.number
            return own & (docnos >= start.ordinal)

        items = (Item(number, scope_of(each.record), each.record.whole, each) for number, each in view.numbered(chosen))
        while batch := await anyio.to_thread.run_sync(_next, items, attrgetter("document")):
            yield Reading(batch, (), Place(batch[-1].ordinal + 1))
        yield Reading((), (), None)

    async def _pages(self, shard: Shard, start: Place) -> AsyncIterator[Reading]:
        """From a server, in the order of its pages, which need not be that of the numbers of another run."""
        place: Place | None = start
        while place:
            page = await self.stores.documents.page(EVERYTHING, MAX_BATCH_DOCUMENTS, place.page)
            own = [each for each in page.records if crc32("\0".join(each.key).encode()) % shard.shards == shard.number]
            items = [Item(place.ordinal + n, scope_of(each), each.whole) for n, each in enumerate(own)]
            place = None if page.next is None else Place(place.ordinal + len(own), page.next)
            yield Reading(items, (), place)


@dataclass(frozen=True, slots=True)
class Files:
    """The documents of NDJSON files and of folders with a BEIR corpus.

    :param paths: as they are named in the catalog.
    :param scope: of all documents.
    """

    paths: Sequence[str]
    scope: Scope
    stores: Stores

    @staticmethod
    def state(paths: Sequence[str]) -> tuple[str, ...]:
        """Size and time of each file. Blocks."""
        found = (_file(path).stat() for path in paths)
        return tuple(f"{status.st_size} {status.st_mtime_ns}" for status in found)

    async def total(self) -> int:
        """See :class:`Origin`."""
        return await anyio.to_thread.run_sync(lambda: sum(count_lines(_file(path)) for path in self.paths))

    async def read(self, shard: Shard, start: Place) -> AsyncIterator[Reading]:
        """See :class:`Origin`."""
        lines = self._lines(shard, start)
        while batch := await anyio.to_thread.run_sync(_next, lines, _document):
            parsed = [line for _, _, line in batch]
            checked = await anyio.to_thread.run_sync(self._checked, parsed)
            items, rejected = [], []
            for (ordinal, path, _), line in zip(batch, checked, strict=True):
                if isinstance(line, ValidLine):
                    items.append(Item(ordinal, self.scope, line.document))
                else:
                    rejected.append(Rejected.of(line.error, path, line.line))
            yield Reading(items, rejected, Place(batch[-1][0] + 1))
        yield Reading((), (), None)

    def _lines(self, shard: Shard, start: Place) -> Iterator[tuple[int, str, ParsedLine]]:
        ordinals = count()
        for path in self.paths:
            for line in _parsed(Path(path)):
                ordinal = next(ordinals)
                if ordinal >= start.ordinal and shard.has(ordinal):
                    yield ordinal, path, line

    def _checked(self, lines: Sequence[ParsedLine]) -> Sequence[ParsedLine]:
        """The lines; those become invalid that have too many metadata keys, or no vector where they need one."""
        pipeline = self.stores.pipeline
        with_vectors = [
            InvalidLine(line.line, problem)
            if isinstance(line, ValidLine) and (problem := pipeline.vector_problem(line.document))
            else line
            for line in lines
        ]
        return self.stores.metadata_keys.checked(with_vectors, self.scope)


def _document(line: tuple[int, str, ParsedLine]) -> Document | None:
    return line[-1].document if isinstance(line[-1], ValidLine) else None


def _next(items: Iterator[T], document: Callable[[T], Document | None]) -> list[T]:
    """The next items, as many as are encoded together."""
    batch: list[T] = []
    size = 0
    for item in items:
        batch.append(item)
        found = document(item)
        size += size_bytes(found) if found else 0
        if len(batch) >= MAX_BATCH_DOCUMENTS or size >= MAX_BATCH_BYTES:
            break
    return batch


def _file(path: str) -> Path:
    """The file with the documents of a path. The graph files beside a corpus are not looked at."""
    return corpus_file(Path(path)) or Path(path)


def _parsed(path: Path) -> Iterator[ParsedLine]:
    if corpus := corpus_file(path):
        yield from parse_corpus(corpus)
        return
    with path.open("rb") as lines:
        yield from parse_ndjson(lines)
