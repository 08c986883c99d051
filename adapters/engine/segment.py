"""A batch of documents on disk: written once, mapped into memory, never changed."""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from struct import Struct
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt

from adapters.engine.columns import Columns, ColumnsBuilder
from adapters.engine.text_table import Group, TextColumns, TextTable
from adapters.model.document import Record, fields
from adapters.model.errors import Damaged
from adapters.ports.encoders import Matrix
from adapters.storage import files
from fusion.doc_ids import doc_id
from fusion.rank_fields import RankFields
from fusion.values import DocId

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Record).decode

RECORDS, ENDS, VECTORS, OWNERS = "records.bin", "ends.npy", "vectors.f32", "owners.npy"
"""Files of a segment that :mod:`adapters.engine.salvage` reads."""
_IDS = "ids"
"""Folder of a table of the ids: the number of an id is its row."""
_MAX_CHUNKS = 2**31
"""Chunks of a parent have smaller indexes: see :class:`adapters.model.document.Document`."""
_FRAME = Struct("<II")
"""Before each record: its length in bytes and its CRC-32."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One row to write. ``docno`` is its document number; each write of a document assigns the next one."""

    docno: int
    record: Record
    vectors: Matrix


class Segment:
    """Rows 0 to ``len`` of one folder: records, keys, document numbers, vectors, filterable columns.

    Within a segment, and from one to the next, document numbers grow.

    :ivar vectors: of the windows of all documents, in the order of the rows.
    :ivar owners: for each vector the row of its document; ``None`` if each document has one vector.
    """

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self._ids = TextTable(TextColumns.read(folder / _IDS))
        self.docnos: npt.NDArray[np.int64] = np.load(folder / "docnos.npy")
        self.vectors, self.owners = read_vectors(folder, len(self))
        self.columns = Columns.decode(memoryview(_mapped(folder / "columns.msgpack")))
        self.rank_fields = _rank_fields(self.columns, len(self))
        self._ends: array[int] = array("q", np.load(folder / ENDS).tobytes())  # single reads, which are slow in numpy
        self._records = _mapped(folder / RECORDS)

    def __len__(self) -> int:
        return len(self._ids)

    def row(self, key: tuple[str, str, str]) -> int | None:
        """The row of this key, deleted or not; ``None`` if the segment never had it."""
        tenant, environment, id_ = key
        return self._ids.find((tenant, environment), id_)

    def id(self, row: int) -> str:
        """The id of a row's document."""
        return self._ids.text(row)

    def ids(self, rows: Iterable[int]) -> list[str]:
        """The ids of the documents of some rows, in order."""
        return self._ids.read_texts(rows)

    def chunk_rows(self, chunks: Sequence[tuple[DocId, int]]) -> list[list[int]]:
        """The rows of the chunks with these parents and indexes, deleted or not."""
        numbers, keys, rows = self._chunks
        wanted = np.array([numbers.get(parent, -1) * _MAX_CHUNKS + index for parent, index in chunks], np.int64)
        starts, ends = (keys.searchsorted(wanted, side).tolist() for side in ("left", "right"))
        return [rows[start:end].tolist() for start, end in zip(starts, ends, strict=True)]

    @cached_property
    def _chunks(self) -> tuple[Mapping[DocId, int], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The numbers of the parents; and the keys of all chunks, sorted, with their rows."""
        fields = self.rank_fields or no_fields(0)
        rows = np.flatnonzero((fields.parent >= 0) & (fields.chunk >= 0))
        keys = fields.parent[rows] * _MAX_CHUNKS + fields.chunk[rows]
        order = np.argsort(keys, kind="stable")
        return {parent: number for number, parent in enumerate(fields.parents)}, keys[order], rows[order]

    def record(self, row: int) -> Record:
        """Decode one row's record.

        :raises Damaged: on a checksum mismatch.
        """
        record = _whole_record(self._records[self._start(row) : self._ends[row]])
        if record is None:
            raise Damaged(
                "a document is damaged: `trivium rebuild` recovers the others", f"segment {self.name}, row {row}"
            )
        return record

    def vectors_of(self, row: int) -> Matrix:
        """The vectors of a row's document; shape (windows, dimension)."""
        return vectors_of(row, self.vectors, self.owners)

    def size_bytes(self, row: int) -> int:
        """The size of one row's record on disk."""
        return self._ends[row] - self._start(row)

    def _start(self, row: int) -> int:
        return self._ends[row - 1] if row else 0

    def stored(self, rows: Iterable[int]) -> Iterator[Stored]:
        """The rows in the form that :func:`write` takes."""
        for row in rows:
            yield Stored(int(self.docnos[row]), self.record(row), self.vectors_of(row))


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _whole_record(frame: bytes) -> Record | None:
    """The record in a frame; ``None`` if it is damaged."""
    body = memoryview(frame)[_FRAME.size :]
    if len(frame) < _FRAME.size or _FRAME.unpack_from(frame) != (len(body), crc32(body)):
        return None
    return _decode(body)


def whole_records(folder: Path, are_ends_whole: bool) -> Iterator[tuple[int, Record]]:
    """The undamaged records of a damaged segment, each with its row.

    :param are_ends_whole: whether the file of ends is undamaged; if not, the first damaged record ends the search.
    """
    try:
        stored = (folder / RECORDS).read_bytes()
    except OSError:
        return
    ends = np.load(folder / ENDS).tolist() if are_ends_whole else _framed_ends(stored)
    start = 0
    for row, end in enumerate(ends):
        if (record := _whole_record(stored[start:end])) is not None:
            yield row, record
        start = end


def _framed_ends(stored: bytes) -> Iterator[int]:
    """The ends of the records up to the first damaged one."""
    start = 0
    while start + _FRAME.size <= len(stored):
        end = start + _FRAME.size + _FRAME.unpack_from(stored, start)[0]
        if _whole_record(stored[start:end]) is None:
            return
        yield end
        start = end


def read_vectors(folder: Path, rows: int) -> tuple[Matrix, npt.NDArray[np.int32] | None]:
    """Map the vectors of a segment, with the row of the document of each; ``None`` if each document has one."""
    owners = np.load(folder / OWNERS) if (folder / OWNERS).exists() else None
    # As a plain array: indexing a numpy.memmap costs 20 µs more, for the same memory.
    vectors = np.asarray(np.memmap(folder / VECTORS, np.float32, mode="r"))
    return vectors.reshape(rows if owners is None else len(owners), -1), owners


def vectors_of(row: int, vectors: Matrix, owners: npt.NDArray[np.int32] | None) -> Matrix:
    """The vectors of a row's document; shape (windows, dimension)."""
    if owners is None:
        return vectors[row : row + 1]
    return vectors[owners.searchsorted(row) : owners.searchsorted(row, "right")]


def no_fields(count: int) -> RankFields:
    """Rank fields of rows that have none."""
    return RankFields(
        np.full(count, -1, np.int64), np.full(count, -1, np.int64), np.full(count, np.nan), np.full(count, np.nan), ()
    )


def _rank_fields(columns: Columns, count: int) -> RankFields | None:
    """The rank fields of the rows; ``None`` if no row has any."""
    texts, codes = columns.texts("parent_id")
    numbers = [columns.numbers(field) for field in ("chunk_index", "created_at", "importance")]
    if not len(codes[0]) and not any(len(rows) for rows, _ in numbers):
        return None
    fields = no_fields(count)
    parents, fields.parent[codes[0]] = _parents(columns, texts, *codes)
    for column, (rows, values) in zip((fields.chunk, fields.created_at, fields.importance), numbers, strict=True):
        column[rows] = values
    return RankFields(fields.parent, fields.chunk, fields.created_at, fields.importance, parents)


def _parents(
    columns: Columns, texts: Sequence[str], rows: npt.NDArray[np.int32], codes: npt.NDArray[np.int32]
) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """The parents of some rows: what identifies each, and for each row the index of its parent."""
    names, (_, of_row) = columns.texts("collection")  # each row has one
    pairs, numbers = np.unique(codes.astype(np.int64) * len(names) + of_row[rows], return_inverse=True)
    parents = (doc_id(texts[pair // len(names)], names[pair % len(names)]) for pair in pairs.tolist())
    return tuple(parents), numbers


def write(folder: Path, rows: Iterable[Stored]) -> None:
    """Write a segment of at least one row, with one record at a time in memory. It is on disk when this returns.

    :param rows: with growing document numbers.
    """
    folder.mkdir(parents=True)
    ends, docnos, owners = array("q"), array("q"), array("i")
    ids: list[tuple[Group, str]] = []
    columns = ColumnsBuilder()
    with (folder / RECORDS).open("wb") as records, (folder / VECTORS).open("wb") as vectors:
        for row in rows:
            body = _encode(row.record)
            records.write(_FRAME.pack(len(body), crc32(body)) + body)
            vectors.write(np.ascontiguousarray(row.vectors, np.float32).data)
            owners.extend([len(ids)] * len(row.vectors))
            ends.append(records.tell())
            docnos.append(row.docno)
            ids.append(((row.record.tenant, row.record.environment), row.record.doc_id))
            columns.add(fields(row.record))
    np.save(folder / ENDS, np.frombuffer(ends, np.int64))
    if len(owners) > len(ids):
        np.save(folder / OWNERS, np.frombuffer(owners, np.int32))
    np.save(folder / "docnos.npy", np.frombuffer(docnos, np.int64))
    TextColumns.of(ids).write(folder / _IDS)
    (folder / "columns.msgpack").write_bytes(columns.encode())
    files.sync_tree(folder)
