"""Examines the folders that the settings name."""

from __future__ import annotations

import os
from pathlib import Path

from adapters.storage import files
from orchestrator.indexing.data_version import INSTALLATION_FILE
from orchestrator.service.health import Finding

_MIN_FREE_BYTES = 100_000_000


def has_data(folder: Path) -> bool:
    """Whether a folder is a data folder that was written to."""
    return any(os.access(folder / name, os.F_OK) for name in (INSTALLATION_FILE, "index"))


def examine_data_folder(folder: Path, setting: str, is_default: bool) -> Finding:
    """Whether the data folder has data and can be written. Without data the default one is fine: it is not mistyped."""
    if has_data(folder):
        return examine_folder("data folder", folder, setting)
    if is_default:
        return Finding("data folder", True, f"{folder} has no data yet: `trivium index PATH` writes documents there")
    what = "has no data" if folder.exists() else "does not exist"
    advice = f"`trivium index PATH` writes documents there, unless {setting} is mistyped"
    return Finding("data folder", False, f"{folder} {what}", advice)


def examine_folder(subject: str, path: Path, setting: str) -> Finding:
    """Whether a folder, or the nearest one above it that exists, can be written, and has room."""
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return Finding(subject, False, f"{path} cannot be written", f"set {setting} to a folder that can")
    free_bytes, _ = files.disk_bytes(existing)
    if free_bytes < _MIN_FREE_BYTES:
        advice = "make room: once the disk is full, writes are refused"
        return Finding(subject, False, f"{path}: its disk has {free_bytes / 1e6:.0f} MB left", advice)
    return Finding(subject, True, str(path))
