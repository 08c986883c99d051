"""The embedded engine: one folder, one writer at a time, any number of readers in any number of processes.

A *version* of the library is a manifest and the files that it names. Files never change once written; a write
makes new ones, shares the unchanged ones by hard link, and puts the next manifest in place in one step. All
indexes of one version hold the same documents: a crash leaves the version before, whole.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

import anyio.to_thread
import msgspec
import numpy as np

from adapters import files
from adapters.document import Record, Scope
from adapters.embedded import segment
from adapters.embedded.catalog import Catalog
from adapters.embedded.columns import Flags
from adapters.embedded.manifest import Manifest
from adapters.embedded.merging import worth_keeping
from adapters.embedded.part import Change, Part
from adapters.embedded.segment import Segment, Stored
from adapters.errors import Unavailable, VersionMismatch
from adapters.filter import Filter
from adapters.port import Acknowledgement, Entry, Key
from fusion import DocId

T = TypeVar("T")
_PIECES = 2
"""A large one and what was written since: so many cost a search next to nothing."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version, open. Whoever holds it sees it unchanged, whatever is written meanwhile."""

    manifest: Manifest
    catalog: Catalog
    opened: Mapping[str, object]

    def index(self, part: Part[T]) -> T:
        """A part's index as :meth:`Part.open` gave it."""
        return cast(T, self.opened[part.name])


class Library:
    """Documents and their indexes in ``folder``.

    :param parts: the indexes kept; each version of the library has all of them.
    :param index_version: identity of the encoder and analysers; an index of another one is never written to.
    :param strict: whether such an index is not read, either.
    :raises VersionMismatch: if the folder holds an index of another identity, and that is not to be read.
    """

    def __init__(self, folder: Path, parts: Sequence[Part[Any]], index_version: str, strict: bool = True) -> None:
        self._folder = folder
        self._parts = tuple(parts)
        self._index_version = index_version
        self._opening = RLock()
        """Held while the snapshot is exchanged, so that following another process never undoes a write of our own."""
        folder.mkdir(parents=True, exist_ok=True)
        manifest = Manifest.read(folder, index_version)
        if strict:
            self._refuse_another(manifest)
        self._snapshot = self._open(manifest, None)

    @property
    def index_version(self) -> str:
        """What this library was built with."""
        return self._snapshot.manifest.index_version

    @property
    def mismatch(self) -> str | None:
        """How it was built and how it should have been, where these differ. Not where it is: anybody may read it."""
        return self._mismatch(self._snapshot.manifest)

    def _mismatch(self, manifest: Manifest) -> str | None:
        if manifest.index_version == self._index_version:
            return None
        return (
            f"the index was built as {manifest.index_version!r}, the settings ask for "
            f"{self._index_version!r}: use those settings, or index again into another TRIVIUM_DATA_DIR"
        )

    def generation(self) -> int:
        """The version that searches of this process see."""
        return self._snapshot.manifest.version

    def stamp(self) -> int:
        """Another number whenever searches may find something else."""
        return self.generation()

    def documents_by_part(self) -> dict[str, int]:
        """How many documents each index holds by its own count: all the same, or something is wrong."""
        snapshot = self._snapshot
        if not snapshot.opened:
            return {part.name: 0 for part in self._parts}
        return {part.name: part.count(snapshot.index(part), snapshot.catalog) for part in self._parts}

    def current(self) -> Snapshot:
        """The newest version that this process has opened."""
        return self._snapshot

    def refresh(self) -> bool:
        """Follow the manifest: open what another process has written. True if there was something new."""
        with self._opening:
            newest = Manifest.read(self._folder, self._index_version)
            if newest.version == self._snapshot.manifest.version:
                return False
            self._snapshot = self._open(newest, self._snapshot)
            return True

    async def fetch(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, Record]:
        """The records that exist, by id."""
        catalog = self._snapshot.catalog
        found = {}
        for id_ in ids:
            place = catalog.find((scope.tenant, scope.environment, id_))
            if place is not None:
                segment_, row = place
                found[id_] = segment_.record(row)
        return found

    async def find(self, wanted: Filter, limit: int) -> list[Record]:
        """See :class:`adapters.port.DocumentReader`."""
        catalog = self._snapshot.catalog
        return [catalog.record(position) for position in catalog.passing(wanted)[:limit].tolist()]

    def entries(self, count: int) -> list[Entry]:
        """At most ``count`` living documents, evenly spread over the order of writing."""
        catalog = self._snapshot.catalog
        living = np.flatnonzero(catalog.live)
        chosen = living[np.linspace(0, len(living) - 1, min(count, len(living))).astype(int)] if len(living) else living
        rows = (catalog.locate(int(position)) for position in chosen)
        return [Entry(segment_.record(row), segment_.vectors[row]) for segment_, row in rows]

    async def sample(self, count: int) -> list[Record]:
        """See :class:`adapters.port.DocumentReader`."""
        return [entry.record for entry in self.entries(count)]

    async def counts(self, field: str, wanted: Filter) -> dict[str, int]:
        """See :class:`adapters.port.DocumentReader`."""
        catalog = self._snapshot.catalog
        flags = catalog.mask(wanted).flags
        totals: Counter[str] = Counter()
        for segment_, part in zip(catalog.segments, _split(flags, catalog), strict=True):
            totals.update(segment_.columns.counts(field, part))
        return dict(totals)

    async def write(self, upserts: Sequence[Entry], deletes: Iterable[Key]) -> Acknowledgement:
        """See :class:`adapters.port.Writer`; off the event loop."""
        return Acknowledgement(await anyio.to_thread.run_sync(self.write_now, upserts, list(deletes)))

    def write_now(self, upserts: Sequence[Entry], deletes: Iterable[Key] = ()) -> int:
        """Add, replace and delete, in one new version. Waits for a writer in another process.

        A key that stands twice among ``upserts`` keeps its last entry.

        :raises Unavailable: if it cannot be written (a full disk, say); then nothing has changed.
        :raises VersionMismatch: if another encoder or analyser built it.
        """
        try:
            return self._write({entry.record.key: entry for entry in upserts}, set(deletes))
        except OSError as error:
            raise Unavailable(f"the index in {self._folder} cannot be written: {error}") from error

    def _write(self, newest: Mapping[Key, Entry], deletes: set[Key]) -> int:
        with files.exclusive(self._folder / "lock"), self._opening:
            self.refresh()
            self._refuse_another(self._snapshot.manifest)
            catalog = self._snapshot.catalog
            gone = [position for key in deletes.union(newest) if (position := catalog.position(key)) is not None]
            if not newest and not gone:
                return self._snapshot.manifest.version
            first = self._snapshot.manifest.next_docno
            added = [Stored(first + n, e.record, e.vector) for n, e in enumerate(newest.values())]
            dead = ~catalog.live
            dead[gone] = True
            kept = worth_keeping(catalog.segments, _split(dead, catalog), len(added))
            removed = sorted(int(docno) for docno in catalog.docnos[gone])
            self._publish(kept, dead, added, Change([row.docno for row in added], removed))
            return self._snapshot.manifest.version

    def _refuse_another(self, manifest: Manifest) -> None:
        if told := self._mismatch(manifest):
            raise VersionMismatch(f"{self._folder}: {told}")

    def scattered(self) -> bool:
        """Whether :meth:`optimize` would make searches faster by more than it costs."""
        snapshot = self._snapshot
        if snapshot.manifest.optimized or not snapshot.opened:
            return False
        return snapshot.catalog.scattered() or any(part.pieces(snapshot.index(part)) > _PIECES for part in self._parts)

    def optimize(self) -> None:
        """One segment without dead rows, every part in one piece: the fastest to search. Nothing is lost or added."""
        with files.exclusive(self._folder / "lock"), self._opening:
            self.refresh()
            self._refuse_another(self._snapshot.manifest)
            catalog = self._snapshot.catalog
            if self._snapshot.manifest.optimized or not len(catalog):
                return
            whole = len(catalog.segments) == 1 and catalog.count == len(catalog)
            self._publish(1 if whole else 0, ~catalog.live, [], Change([], []), optimized=True)

    def _publish(
        self, kept: int, dead: Flags, added: Sequence[Stored], change: Change, optimized: bool = False
    ) -> None:
        """The next version: the first ``kept`` segments as they are, all later rows that live and ``added`` in one."""
        manifest = self._snapshot.manifest
        draft = msgspec.structs.replace(
            manifest,
            version=manifest.version + 1,
            next_docno=manifest.next_docno + len(added),
            optimized=optimized,
        )
        for leftover in self._folder.glob(f"*/{draft.name}*"):  # of a writer that died here
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        catalog = self._merge(draft.name, kept, dead, added)
        self._build(draft.name, catalog, change)
        names = tuple(segment_.name for segment_ in catalog.segments)
        written = msgspec.structs.replace(draft, segments=names, documents=catalog.count)
        written.write(self._folder)
        self._snapshot = self._open(written, self._snapshot)
        self._sweep(keep=(manifest, written))

    def _merge(self, name: str, kept: int, dead: Flags, added: Sequence[Stored]) -> Catalog:
        """Write the new segment, if it has rows, and the flags of the dead; the catalog of both."""
        catalog = self._snapshot.catalog
        segments = list(catalog.segments[:kept])
        later = zip(catalog.segments[kept:], _split(dead, catalog)[kept:], strict=True)
        merged = [(old, np.flatnonzero(~flags)) for old, flags in later]
        if added or any(len(rows) for _, rows in merged):
            segment.write(self._folder / "segments" / name, _rows(merged, added))
            files.sync(self._folder / "segments")
            segments.append(Segment(self._folder / "segments" / name))
        flags = np.zeros(sum(map(len, segments)), np.bool_)
        flags[: catalog.bases[kept]] = dead[: catalog.bases[kept]]
        (self._folder / "dead").mkdir(exist_ok=True)
        np.save(self._folder / "dead" / f"{name}.npy", flags)
        files.sync_tree(self._folder / "dead")
        return Catalog(segments, flags)

    def _build(self, name: str, catalog: Catalog, change: Change) -> None:
        """Every part's files for a catalog."""
        manifest = self._snapshot.manifest
        for part in self._parts:
            target = self._folder / part.name / name
            target.mkdir(parents=True)
            before = self._folder / part.name / manifest.name if manifest.version else None
            part.build(target, before, catalog, change)
            files.sync_tree(target)
            files.sync(target.parent)

    def _open(self, manifest: Manifest, before: Snapshot | None) -> Snapshot:
        """Open a version; segments that are open already are shared with the one before."""
        while True:
            try:
                held = {s.name: s for s in before.catalog.segments} if before else {}
                folder = self._folder / "segments"
                segments = [held.get(name) or Segment(folder / name) for name in manifest.segments]
                dead = (
                    np.load(self._folder / "dead" / f"{manifest.name}.npy")
                    if manifest.version
                    else np.zeros(0, np.bool_)
                )
                catalog = Catalog(segments, dead)
                opened = (
                    {part.name: part.open(self._folder / part.name / manifest.name, catalog) for part in self._parts}
                    if manifest.version
                    else {}
                )
            except Exception as error:
                # Every engine has errors of its own for a file that is not there. If two newer versions came while
                # this one was opened, its files were swept away: then there is a newer one to open.
                newest = Manifest.read(self._folder, self._index_version)
                if newest.version == manifest.version:
                    built = f"built as {manifest.index_version!r}" if before is None else "newly written"
                    raise Unavailable(f"the index in {self._folder}, {built}, cannot be opened: {error}") from error
                manifest = newest
            else:
                return Snapshot(manifest, catalog, opened)

    def _sweep(self, keep: tuple[Manifest, Manifest]) -> None:
        """Remove what neither this version nor the one before it names; who still reads it keeps it mapped.

        The version is published already, so nothing here may fail: what is left is swept the next time.
        """
        names = {manifest.name for manifest in keep}
        for part in self._parts:
            for folder in (self._folder / part.name).iterdir():
                if folder.name not in names:
                    shutil.rmtree(folder, ignore_errors=True)
        segments = {name for manifest in keep for name in manifest.segments}
        for folder in (self._folder / "segments").iterdir():
            if folder.name not in segments:
                shutil.rmtree(folder, ignore_errors=True)
        for file in (self._folder / "dead").iterdir():
            if file.stem not in names:
                file.unlink(missing_ok=True)


def _split(flags: Flags, catalog: Catalog) -> list[Flags]:
    """Flags by position as flags by segment."""
    return [flags[a:b] for a, b in zip(catalog.bases[:-1], catalog.bases[1:], strict=True)]


def _rows(merged: Iterable[tuple[Segment, Iterable[int]]], added: Iterable[Stored]) -> Iterator[Stored]:
    for old, rows in merged:
        yield from old.stored(rows)
    yield from added
