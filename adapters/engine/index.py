"""The embedded engine: one folder, one writer at a time, any number of readers in any number of processes.

A *commit* is a manifest and the files that it names. Files never change once written: a write creates new ones, links
the unchanged ones, and replaces the manifest in one step. All indexes of one commit contain the same documents. After a
crash the previous commit is complete.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from threading import RLock
from typing import Any

import anyio.to_thread
import msgspec
import numpy as np

from adapters.engine import segment
from adapters.engine.checksums import CheckedFiles, damaged_files
from adapters.engine.columns import Flags
from adapters.engine.commit_paths import DEAD, SEGMENTS, commit_files, remove_unused
from adapters.engine.component import Delta, IndexComponent
from adapters.engine.manifest import Manifest
from adapters.engine.merging import count_unmerged
from adapters.engine.segment import Segment, Stored
from adapters.engine.segment_set import SegmentSet
from adapters.engine.view import IndexView, by_segment
from adapters.model.document import Record, Scope, hidden_keys
from adapters.model.errors import BUILD_ADVICE, Damaged, Unavailable, VersionMismatch
from adapters.model.filter import Filter
from adapters.model.protection import UNRESTRICTED, Protection, Viewer
from adapters.ports.documents import ChunkPosition, DocumentPage
from adapters.ports.replica import Key, VectorRecord
from adapters.ports.retriever import SourceQuery
from adapters.ports.snapshot import Snapshot
from adapters.ports.writer import Acknowledgement
from adapters.storage import files
from fusion.columns import Documents
from fusion.values import DocId

_MAX_FRAGMENTS = 2
"""One large fragment and one of later writes: a search of two costs almost as little as of one."""


class EmbeddedIndex:
    """Documents and their indexes in ``folder``.

    :param components: the indexes; each commit has all of them.
    :param build_id: identity of the encoder and analysers; an index with another one is never written to.
    :param strict: whether such an index must not be read, either.
    :raises VersionMismatch: with ``strict``, if the folder contains an index of another build.
    """

    def __init__(
        self, folder: Path, components: Sequence[IndexComponent[Any]], build_id: str, strict: bool = True
    ) -> None:
        self._folder = folder
        self._components = tuple(components)
        self._component_names = tuple(component.name for component in components)
        self.required_build = build_id
        self.least_generation = 0  # of the next commit: an index that was live before has had smaller ones
        self._exchange = RLock()
        """Locked while the view is replaced, so that :meth:`refresh` never undoes a write of this process."""
        files.ensure_folder(folder)
        self._checked = CheckedFiles(folder)
        manifest = Manifest.read(folder, build_id)
        if strict:
            self._require_same_build(manifest)
        self._view = self._open(manifest, None)

    @property
    def build_id(self) -> str:
        """The build id of the index."""
        return self._view.manifest.build_id

    @property
    def mismatch(self) -> str | None:
        """How the index was built, if not as required. Callers see this: it contains no path."""
        return self._describe_mismatch(self._view.manifest)

    def _describe_mismatch(self, manifest: Manifest) -> str | None:
        if manifest.build_id == self.required_build:
            return None
        prepared = self.required_build.removesuffix("+".join(each.format for each in self._components))
        advice = BUILD_ADVICE
        if manifest.build_id.startswith(prepared):  # its records and vectors are as required
            advice = "`trivium fill` builds it for these settings from its own documents"
        return f"the index was built as {manifest.build_id!r}, the settings require {self.required_build!r}: {advice}"

    def generation(self) -> int:
        """The commit that searches of this process see."""
        return self._view.manifest.generation

    def newest_generation(self) -> int:
        """The newest commit on disk, whether this process has opened it or not. Reads a file.

        :raises Damaged: on a checksum mismatch of the manifest.
        """
        return Manifest.read(self._folder, self.required_build).generation

    def data_version(self) -> int:
        """See :class:`orchestrator.indexing.data_version.VersionSource`: the generation."""
        return self.generation()

    def documents_by_component(self) -> dict[str, int]:
        """Number of documents in each index by its own count. If they differ, an index is damaged."""
        view = self._view
        if not view.opened:
            return dict.fromkeys(self._component_names, 0)
        return {each.name: each.count(view.component(each), view.segments) for each in self._components}

    def current(self) -> IndexView:
        """The newest commit that this process has opened."""
        return self._view

    def refresh(self) -> bool:
        """Open what another process has committed; returns whether there was anything new."""
        with self._exchange:
            newest = Manifest.read(self._folder, self.required_build)
            if newest.generation == self._view.manifest.generation:
                return False
            self._view = self._open(newest, self._view)
            return True

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[DocId, Record]:
        """See :class:`adapters.ports.DocumentFetcher`. This and the next six methods read the newest commit."""
        return await self._view.fetch(scope, documents)

    async def protections(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, Protection]:
        """See :class:`adapters.ports.ProtectionReader`."""
        return await self._view.protections(scope, ids)

    async def find(self, condition: Filter, limit: int) -> list[Record]:
        """See :class:`adapters.ports.DocumentFinder`."""
        return await self._view.find(condition, limit)

    async def chunk_ids(self, positions: Sequence[ChunkPosition], condition: Filter) -> Mapping[ChunkPosition, str]:
        """See :class:`adapters.ports.DocumentFinder`."""
        return await self._view.chunk_ids(positions, condition)

    async def page(self, condition: Filter, limit: int, start: str | None = None) -> DocumentPage:
        """See :class:`adapters.ports.DocumentFinder`."""
        return await self._view.page(condition, limit, start)

    async def counts(self, field: str, condition: Filter) -> dict[str, int]:
        """See :class:`adapters.ports.DocumentFinder`."""
        return await self._view.counts(field, condition)

    async def sample(self, count: int) -> list[Record]:
        """See :class:`adapters.ports.DocumentSampler`."""
        return await self._view.sample(count)

    async def write(
        self, upserts: Sequence[VectorRecord], deletes: Iterable[Key], viewer: Viewer = UNRESTRICTED
    ) -> Acknowledgement:
        """See :class:`adapters.ports.DocumentWriter`. Runs in a thread."""
        return await anyio.to_thread.run_sync(self.write_blocking, upserts, list(deletes), viewer)

    def write_blocking(
        self, upserts: Sequence[VectorRecord], deletes: Iterable[Key] = (), viewer: Viewer = UNRESTRICTED
    ) -> Acknowledgement:
        """Add, replace and delete, in one commit. Waits for a writer in another process. The last of equal keys counts.

        :raises Unavailable: if it cannot be written, such as on a full disk; then nothing has changed.
        :raises VersionMismatch: if another encoder or analyser built the index.
        """
        try:
            return self._write({each.record.key: each for each in upserts}, set(deletes), viewer)
        except OSError as error:
            raise Unavailable("the index cannot be written", f"{self._folder}: {error}") from error

    def _write(self, newest: dict[Key, VectorRecord], deletes: set[Key], viewer: Viewer) -> Acknowledgement:
        with files.exclusive(self._folder / "lock"), self._exchange:
            self.refresh()
            self._require_same_build(self._view.manifest)
            segments = self._view.segments
            positions = ((key, segments.position(key)) for key in deletes.union(newest))
            existing = {key: position for key, position in positions if position is not None}
            absent, hidden = frozenset(deletes.difference(existing)), frozenset[Key]()
            if not viewer.sees_everything:
                hidden = hidden_keys(map(segments.record, existing.values()), viewer)
            removed = [position for key, position in existing.items() if key not in hidden]
            newest = {key: each for key, each in newest.items() if key not in hidden}
            if not newest and not removed:
                return Acknowledgement(self._view.manifest.generation, hidden=hidden, absent=absent)
            first = self._view.manifest.next_docno
            added = [Stored(n, each.record, each.vectors) for n, each in enumerate(newest.values(), first)]
            dead = ~segments.live
            dead[removed] = True
            unmerged = count_unmerged(by_segment(dead, segments), len(added))
            scopes = {(tenant, environment) for tenant, environment, _ in existing.keys() - hidden}
            delta = Delta([row.docno for row in added], sorted(segments.docnos[removed].tolist()), scopes)
            self._publish(unmerged, dead, added, delta)
            return Acknowledgement(self._view.manifest.generation, hidden=hidden, absent=absent)

    def _require_same_build(self, manifest: Manifest) -> None:
        if mismatch := self._describe_mismatch(manifest):
            raise VersionMismatch(mismatch, str(self._folder))

    def needs_optimizing(self) -> bool:
        """Whether :meth:`optimize` would make searches faster by more than it costs."""
        view = self._view
        if view.manifest.optimized or not view.opened:
            return False
        fragments = (component.fragment_count(view.component(component)) for component in self._components)
        return view.segments.is_scattered() or any(count > _MAX_FRAGMENTS for count in fragments)

    def optimize(self) -> None:
        """Merge everything into one segment; nothing is left of deleted rows. No document is lost or added."""
        with files.exclusive(self._folder / "lock"), self._exchange:
            self.refresh()
            self._require_same_build(self._view.manifest)
            segments = self._view.segments
            if not self._view.manifest.optimized and len(segments):
                is_one = len(segments.segments) == 1 and segments.count == len(segments)
                self._publish(1 if is_one else 0, ~segments.live, [], Delta([], []), optimized=True)
            remove_unused(self._folder, self._component_names, self._view.manifest)

    def rebuild(self) -> None:
        """Build the files of every component again from the existing segments, after a change of their settings."""
        with files.exclusive(self._folder / "lock"), self._exchange:
            self.refresh()
            self._require_same_build(self._view.manifest)
            segments, is_optimized = self._view.segments, self._view.manifest.optimized
            self._publish(len(segments.segments), ~segments.live, [], Delta([], []), is_optimized)

    def _publish(
        self, unmerged: int, dead: Flags, added: Sequence[Stored], delta: Delta, optimized: bool = False
    ) -> None:
        """Publish a commit: the first ``unmerged`` segments unchanged, later living rows and ``added`` in a new one."""
        manifest = self._view.manifest
        draft = msgspec.structs.replace(
            manifest,
            generation=max(manifest.generation + 1, self.least_generation),
            next_docno=manifest.next_docno + len(added),
            optimized=optimized,
        )
        for leftover in self._folder.glob(f"*/{draft.name}*"):  # of a writer that did not finish
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        segments = self._merge(draft.name, unmerged, dead, added)
        self._build(draft.name, segments, delta)
        published = msgspec.structs.replace(
            draft,
            segments=tuple(each.name for each in segments.segments),
            rows=tuple(map(len, segments.segments)),
            documents=segments.count,
        )
        digests = self._checked.digests(commit_files(self._folder, self._component_names, published), manifest.files)
        published = msgspec.structs.replace(published, files=digests)
        published.write(self._folder)
        self._view = self._open(published, self._view)
        remove_unused(self._folder, self._component_names, manifest, published)

    def _merge(self, name: str, unmerged: int, dead: Flags, added: Sequence[Stored]) -> SegmentSet:
        """Write the new segment, if it has rows, and the flags of deleted rows; returns all segments of the commit."""
        before = self._view.segments
        segments = list(before.segments[:unmerged])
        living = zip(before.segments, by_segment(~dead, before), strict=True)
        merged = [(old, np.flatnonzero(flags)) for old, flags in list(living)[unmerged:]]
        if added or any(len(rows) for _, rows in merged):
            kept = chain.from_iterable(old.stored(rows) for old, rows in merged)
            segment.write(self._folder / SEGMENTS / name, chain(kept, added))
            files.sync(self._folder / SEGMENTS)
            segments.append(Segment(self._folder / SEGMENTS / name))
        flags, end = np.zeros(sum(map(len, segments)), np.bool_), before.bases[unmerged]
        flags[:end] = dead[:end]
        (self._folder / DEAD).mkdir(exist_ok=True)
        np.save(self._folder / DEAD / f"{name}.npy", flags)
        files.sync_tree(self._folder / DEAD)
        return SegmentSet(segments, flags)

    def damaged(self) -> list[Path]:
        """The damaged files of all existing commits. Reads all files: blocks."""
        damaged = {path for each in Manifest.copies(self._folder) for path in damaged_files(self._folder, each.files)}
        return sorted(damaged.union(Manifest.damaged(self._folder)))

    def _build(self, name: str, segments: SegmentSet, delta: Delta) -> None:
        """Build the files of every component."""
        built = self._view.manifest
        for component in self._components:
            target = self._folder / component.name / name
            target.mkdir(parents=True)
            previous = self._folder / component.name / built.name if built.files else None
            component.build(target, previous, segments, delta)
            files.sync_tree(target)
            files.sync(target.parent)

    def _open(self, manifest: Manifest, before: IndexView | None) -> IndexView:
        """Open a commit; segments that are already open are reused from the view before."""
        while True:
            try:
                return self._opened(manifest, before)
            except Exception as error:
                # The engines raise different errors for a missing file. If two newer commits were published while this
                # one was opened, its files were removed, and the newest commit is opened instead.
                newest = Manifest.read(self._folder, self.required_build)
                if newest.generation == manifest.generation:
                    if isinstance(error, Damaged):
                        raise
                    built = f"built as {manifest.build_id!r}" if before is None else "newly written"
                    raise Unavailable("the index cannot be opened", f"{self._folder}, {built}: {error}") from error
                manifest = newest

    def _opened(self, manifest: Manifest, before: IndexView | None) -> IndexView:
        self._checked.check(manifest.files)
        shared = {each.name: each for each in before.segments.segments} if before else {}
        segments = [shared.get(name) or Segment(self._folder / SEGMENTS / name) for name in manifest.segments]
        if not manifest.files:
            return IndexView(manifest, SegmentSet(segments, np.zeros(0, np.bool_)), {})
        combined = SegmentSet(segments, np.load(self._folder / DEAD / f"{manifest.name}.npy"))
        known = before.opened if before else {}
        opened = {
            each.name: each.open(self._folder / each.name / manifest.name, combined, known.get(each.name))
            for each in self._components
        }
        return IndexView(manifest, combined, opened)


def pinned_view(index: EmbeddedIndex, query: SourceQuery) -> IndexView:
    """The commit to search for a query: the one pinned for its request, else the newest."""
    return snapshot_view(index, query.snapshot)


def snapshot_view(index: EmbeddedIndex, snapshot: Snapshot | None) -> IndexView:
    """The commit of a snapshot; the newest one if there is no snapshot, or it has no commit of the embedded engine."""
    view = snapshot.view if snapshot else None
    return view if isinstance(view, IndexView) else index.current()
