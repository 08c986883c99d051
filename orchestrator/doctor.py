"""What is well and what is not, with what to do about it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from adapters import AdapterError
from orchestrator.settings import Settings
from orchestrator.wiring import Service, open_service


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``advice`` is what to do where it is not well."""

    part: str
    well: bool
    saw: str
    advice: str = ""


def examine(settings: Settings) -> Iterator[Finding]:
    """Look at everything that the settings name, one finding at a time."""
    yield _folder("data folder", settings.data_dir, "TRIVIUM_DATA_DIR")
    yield _folder("model folder", settings.model_dir, "TRIVIUM_MODEL_DIR")
    try:
        service = open_service(settings)
    except (AdapterError, OSError) as error:
        yield Finding("service", False, str(error), "mend what it says; nothing else can be looked at before")
        return
    yield Finding("embedder", True, f"{service.model.identity}, {service.model.dimension} numbers a vector")
    yield from _stores(service)
    yield _table(service)


def _folder(part: str, path: Path, setting: str) -> Finding:
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    if os.access(existing, os.W_OK | os.X_OK):
        return Finding(part, True, str(path))
    return Finding(part, False, f"{path} cannot be written", f"set {setting} to a folder that can")


def _stores(service: Service) -> Iterator[Finding]:
    snapshot = service.library.current()
    count = snapshot.catalog.count
    found = f"{count} documents in {len(snapshot.catalog.segments)} segments, generation {service.library.generation()}"
    yield Finding("index", True, found if count else "empty: run `trivium index PATH`")
    for source, held in service.library.documents_by_part().items():
        agrees = held == count
        advice = "" if agrees else "index again into another TRIVIUM_DATA_DIR, and report this"
        yield Finding(source, agrees, f"{held} documents", advice)


def _table(service: Service) -> Finding:
    table = service.table.table
    if service.table_is_due():
        advice = "run `trivium tidy`: until then a flood of queries waits for the model"
        return Finding("query table", False, "none" if table is None else "fitted to half the corpus", advice)
    if table is None:
        return Finding("query table", True, "none, and too few documents to need one")
    return Finding("query table", True, f"agrees with the model on {table.agreement:.0%} of the ten nearest")
