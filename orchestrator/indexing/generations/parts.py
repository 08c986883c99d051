"""Encoded documents in files, until they are written: those of each shard, in parts, and how far it has read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from adapters.ports import VectorRecord
from adapters.storage import checked_file, files
from orchestrator.indexing.generations.catalog import PROGRESS
from orchestrator.indexing.generations.origins import Place, Rejected
from orchestrator.indexing.log.write import Write

_PART = ".part"


class Progress(msgspec.Struct, frozen=True):
    """How far a shard has read.

    :param parts: number of parts that it has written.
    :param next: where the next one begins; ``None`` if the shard is complete.
    """

    parts: int = 0
    next: Place | None = Place()
    documents: int = 0
    rejected: int = 0


class _Part(msgspec.Struct, frozen=True):
    ordinals: list[int]
    write: Write


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Part).decode


class ShardParts:
    """The parts of one shard, in a folder of its own. All methods block.

    A part is written before the progress that counts it: a part that is written again after a crash replaces the first.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files.ensure_folder(folder)

    @property
    def progress(self) -> Progress:
        """How far the shard has read."""
        try:
            return checked_file.read_json(self.folder / PROGRESS, Progress)
        except FileNotFoundError:
            return Progress()

    def add(
        self, items: Sequence[tuple[int, VectorRecord]], rejected: Sequence[Rejected], next_: Place | None
    ) -> Progress:
        """Add the next part. Returns the new progress."""
        before = self.progress
        newest = {each.record.key: (ordinal, each) for ordinal, each in items}
        kept = sorted(newest.values(), key=lambda item: item[0])
        part = _Part([ordinal for ordinal, _ in kept], Write.of([each for _, each in kept], []))
        name = f"{before.parts:08d}"
        for leftover in self.folder.glob(f"{name}-*{_PART}"):  # of a process that ended before the progress was written
            leftover.unlink()
        if kept:
            checked_file.write(self.folder / f"{name}-{kept[-1][0]}{_PART}", _encode(part))
        if rejected:
            lines = b"".join(msgspec.json.encode(each) + b"\n" for each in rejected)
            files.replace(self.folder / f"{name}.rejected", lines, mode=0o600)
        after = Progress(before.parts + 1, next_, before.documents + len(kept), before.rejected + len(rejected))
        checked_file.write_json(self.folder / PROGRESS, after)
        return after

    def items(self) -> Iterator[tuple[int, VectorRecord]]:
        """The documents of the parts that exist, with their numbers, in order. A part is in memory at a time."""
        for path in self._paths():
            part = _decode(checked_file.read(path))
            yield from zip(part.ordinals, part.write.upserts(), strict=True)

    def remove(self, ordinal: int) -> None:
        """Remove the parts of which no document has a larger number."""
        for path in self._paths():
            if _numbers(path)[1] <= ordinal:
                path.unlink()

    def rejected(self) -> Iterator[bytes]:
        """The lines of the rejected documents."""
        for path in sorted(self.folder.glob("*.rejected")):
            yield path.read_bytes()

    def _paths(self) -> list[Path]:
        """The parts that the progress counts."""
        counted = self.progress.parts
        return [path for path in sorted(self.folder.glob(f"*{_PART}")) if _numbers(path)[0] < counted]


def _numbers(path: Path) -> tuple[int, int]:
    """The number of a part, and that of its last document, which are in its name."""
    part, _, last = path.stem.partition("-")
    return int(part), int(last)
