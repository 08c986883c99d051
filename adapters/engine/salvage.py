"""A new index from the undamaged documents of a damaged one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from adapters.engine import segment
from adapters.engine.checksums import damaged_files
from adapters.engine.columns import Flags
from adapters.engine.commit_paths import DEAD, SEGMENTS
from adapters.engine.component import IndexComponent
from adapters.engine.index import EmbeddedIndex
from adapters.engine.manifest import Manifest
from adapters.model.document import Record
from adapters.model.errors import Damaged, Unavailable, VersionMismatch
from adapters.ports.encoders import DocumentEncoder, Matrix
from adapters.ports.replica import VectorRecord
from adapters.storage import files

_BATCH_DOCUMENTS = 4_096
_NEW, OLD = ".rebuilt", ".replaced"
"""What the folders of a new index that is not complete, and of one that was replaced, have behind their names."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The outcome of :func:`rebuild`.

    :param documents: in the new index.
    :param lost: documents of the damaged index that cannot be read; negative if deleted ones were restored.
    :param encoded: documents whose vectors were damaged and computed again.
    :param old: the folder of the damaged index.
    """

    documents: int
    lost: int
    encoded: int
    old: Path


def rebuild(
    folder: Path,
    components: Sequence[IndexComponent[Any]],
    build_id: str,
    encoder: DocumentEncoder,
    with_deleted: bool = False,
    progress: Callable[[int], None] = lambda _: None,
    *,
    accepts: Callable[[str], bool] | None = None,
) -> Rebuilt:
    """Replace a damaged index by a new one with every document whose record is undamaged.

    The damaged index is moved, not deleted. Writers of other processes wait; generations continue after the old ones.

    :param with_deleted: whether deleted documents are restored, too, if the file that lists them is damaged.
    :param progress: called with the number of documents that were written.
    :param accepts: whether an index of another build may be replaced, because its records and vectors are the same.
    :raises Damaged: if every manifest is damaged, or, without ``with_deleted``, the list of deleted documents.
    :raises VersionMismatch: if another encoder or analyser built the index.
    :raises Unavailable: if another process is rebuilding it.
    """
    with files.exclusive_now(folder / "lock") as has_lock:
        if not has_lock:
            raise Unavailable("another process writes to the index or rebuilds it")
        manifest = _manifest(folder, build_id, accepts or (lambda built: built == build_id))
        target = folder.with_name(folder.name + _NEW)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(mode=0o700)
        Manifest(manifest.generation, build_id).write(target)
        index = EmbeddedIndex(target, components, build_id)
        encoded = 0
        records = _whole_records(folder, manifest, with_deleted)
        while batch := list(islice(records, _BATCH_DOCUMENTS)):
            missing = [n for n, (_, vectors) in enumerate(batch) if vectors is None]
            damaged = [batch[n][0].whole for n in missing]
            computed = dict(zip(missing, encoder.encode_documents(damaged), strict=True))
            encoded += len(missing)
            index.write_blocking(
                [
                    VectorRecord(record, computed[n] if vectors is None else vectors)
                    for n, (record, vectors) in enumerate(batch)
                ]
            )
            progress(len(batch))
        old = next(path for n in range(1_000) if not (path := folder.with_name(f"{folder.name}{OLD}-{n}")).exists())
        folder.rename(old)
        target.rename(folder)
        files.sync(folder.parent)
        documents = index.current().segments.count
        return Rebuilt(documents, manifest.documents - documents, encoded, old)


def _manifest(folder: Path, build_id: str, accepts: Callable[[str], bool]) -> Manifest:
    """The current manifest, or the newest copy if it is damaged."""
    try:
        manifest = Manifest.read(folder, build_id)
    except Damaged:
        copies = Manifest.copies(folder)
        if not copies:
            raise
        manifest = copies[0]
    if not accepts(manifest.build_id):
        raise VersionMismatch(f"the index was built as {manifest.build_id!r}, the settings require {build_id!r}")
    return manifest


def _whole_records(folder: Path, manifest: Manifest, with_deleted: bool) -> Iterator[tuple[Record, Matrix | None]]:
    """The living documents whose records are undamaged, in order, each with its vectors if these are undamaged."""
    if not manifest.files:
        return
    damaged = set(damaged_files(folder, manifest.files))
    dead = _dead(folder / DEAD / f"{manifest.name}.npy", manifest, damaged, with_deleted)
    first = 0
    for name, rows in zip(manifest.segments, manifest.rows, strict=True):
        segment_folder = folder / SEGMENTS / name
        stored = None
        if damaged.isdisjoint({segment_folder / segment.VECTORS, segment_folder / segment.OWNERS}):
            stored = segment.read_vectors(segment_folder, rows)
        for row, record in segment.whole_records(segment_folder, segment_folder / segment.ENDS not in damaged):
            if not dead[first + row]:
                yield record, None if stored is None else segment.vectors_of(row, *stored)
        first += rows


def _dead(path: Path, manifest: Manifest, damaged: Collection[Path], with_deleted: bool) -> Flags:
    """Returns for each row of all segments whether it was deleted."""
    if path not in damaged:
        flags: Flags = np.load(path)
        return flags
    if with_deleted:
        return np.zeros(sum(manifest.rows), np.bool_)
    raise Damaged(
        "the list of deleted documents is damaged: --with-deleted restores the deleted documents, too",
        f"{path}: checksum mismatch",
    )
