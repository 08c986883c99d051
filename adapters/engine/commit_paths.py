"""The paths of the files of a commit in the folder of the index."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from adapters.engine.manifest import COPIES, Manifest

SEGMENTS, DEAD = "segments", "dead"


def commit_files(folder: Path, components: Sequence[str], manifest: Manifest) -> Iterator[Path]:
    """Every file of a commit but its manifest.

    :param components: the names of the components that the index consists of.
    """
    yield folder / DEAD / f"{manifest.name}.npy"
    for name in manifest.segments:
        yield from (folder / SEGMENTS / name).rglob("*")
    for component in components:
        yield from (folder / component / manifest.name).rglob("*")


def remove_unused(folder: Path, components: Sequence[str], *manifests: Manifest) -> None:
    """Remove the files that none of these commits uses. Processes that still read them have mapped them.

    The commit is published already, so errors are ignored: a file that cannot be removed is removed after the next
    write.
    """
    names = {manifest.name for manifest in manifests}
    segments = {name for manifest in manifests for name in manifest.segments}
    for parent, used in ((SEGMENTS, segments), *((component, names) for component in components)):
        for path in (folder / parent).iterdir():
            if path.name not in used:
                shutil.rmtree(path, ignore_errors=True)
    for parent in (DEAD, COPIES):
        for path in (folder / parent).iterdir():
            if path.stem not in names:
                path.unlink(missing_ok=True)
