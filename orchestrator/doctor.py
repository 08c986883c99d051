"""What is well and what is not, with what to do about it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import time

from adapters import AdapterError
from adapters.port import Server
from orchestrator.settings import Settings
from orchestrator.wiring import Service, opened

_SKEW_S = 1.0
"""Seconds: versions of writes are times, so clocks that differ by more may let an older write win."""

_INDEX_AGAIN = "run `trivium index` with everything again: what is there already does no harm"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``advice`` is what to do where it is not well."""

    part: str
    well: bool
    saw: str
    advice: str = ""


async def examine(settings: Settings) -> list[Finding]:
    """Look at everything that the settings name."""
    found = [
        _folder("data folder", settings.data_dir, "TRIVIUM_DATA_DIR"),
        _folder("model folder", settings.model_dir, "TRIVIUM_MODEL_DIR"),
    ]
    try:
        async with opened(settings, prepare=False) as service:
            found.append(Finding("embedder", True, f"{service.model.identity}, {service.model.dimension} numbers"))
            found += _local(service)
            for source, server in service.servers.items():
                found += await _server(source, server)
            found += await _together(service)
            found.append(_table(service))
            found.append(_guard(service))
            found += await _cache(service)
    except (AdapterError, OSError) as error:
        found.append(Finding("service", False, str(error), "mend what it says; nothing else can be looked at before"))
    return found


def _folder(part: str, path: Path, setting: str) -> Finding:
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    if os.access(existing, os.W_OK | os.X_OK):
        return Finding(part, True, str(path))
    return Finding(part, False, f"{path} cannot be written", f"set {setting} to a folder that can")


def _local(service: Service) -> Iterator[Finding]:
    """The embedded engine."""
    if service.local is None:
        return
    library = service.local.library
    snapshot = library.current()
    count = snapshot.catalog.count
    found = f"{count} documents in {len(snapshot.catalog.segments)} segments, generation {library.generation()}"
    yield Finding("index", True, found if count else "empty: run `trivium index PATH`")
    if library.mismatch:
        yield Finding(
            "index version", False, library.mismatch, "do what it says: until then it is read, and not written"
        )
    for source, held in library.documents_by_part().items():
        agrees = held == count
        advice = "" if agrees else "index again into another TRIVIUM_DATA_DIR, and report this"
        yield Finding(source, agrees, f"{held} documents", advice)


async def _server(source: str, server: Server) -> list[Finding]:
    """One server: there, ours, and in our time."""
    setting = f"TRIVIUM_{source.upper()}"
    try:
        version = await server.version()
    except AdapterError as error:
        return [Finding(source, False, str(error), f"start the server, or mend {setting}")]
    found = [Finding(source, True, f"reachable, version {version}")]
    try:
        built = await server.built()  # names the dimension and the index version where they disagree
        saw = "there, and built as the settings say" if built else "none yet: run `trivium index PATH`"
        found.append(Finding(f"{source} index", True, saw))
    except AdapterError as error:
        found.append(Finding(f"{source} index", False, str(error), "do what it says"))
    try:
        theirs = await server.clock()
    except AdapterError as error:
        return [*found, Finding(f"{source} clock", False, str(error), f"look at the server of {setting}")]
    if theirs is not None:
        skew = theirs - time()
        advice = "" if abs(skew) < _SKEW_S else "let both machines follow the same time server"
        found.append(Finding(f"{source} clock", not advice, f"{skew:+.1f} s from ours", advice))
    return found


async def _together(service: Service) -> list[Finding]:
    """What the stores hold, side by side, and what waits for them."""
    if service.replicator is None:
        return []
    replicator = service.replicator
    behind = {name: writes for name in replicator.stores if (writes := replicator.behind(name))}
    told = ", ".join(f"{name} lacks {writes} writes" for name, writes in behind.items())
    advice = "start what is away: the service delivers what waits" if behind else ""
    found = [Finding("journal", not behind, told or "empty: every store holds every write", advice)]
    lacks = "lacks what was written before it was one of the stores"
    found += [Finding(name, False, lacks, _INDEX_AGAIN) for name in replicator.gaps()]
    counts = await replicator.counts()
    agree = len(set(counts.values())) <= 1
    held = ", ".join(f"{name}: {count}" for name, count in counts.items())
    advice = "" if agree else _INDEX_AGAIN
    return [*found, Finding("documents", agree, held, advice)]


async def _cache(service: Service) -> list[Finding]:
    """The cache that all processes share: this one asks it for a number, which nobody needs."""
    if service.generations is None:
        return [Finding("cache", True, "in each process, by itself")]
    if await service.generations.learn(["doctor"]):
        return [Finding("cache", True, "Redis answers")]
    return [
        Finding("cache", False, "Redis does not answer in time", "start it, or mend TRIVIUM_CACHE: all goes on without")
    ]


def _guard(service: Service) -> Finding:
    """What the graph's part of an answer weighs, and whether that is still known."""
    trust = service.guard.trust(service.caller.scope)
    saw = "not known, so it counts in full"
    if trust:
        saw = f"{trust.lift:.1f} times chance over {trust.walks} passages, so it counts {trust.guard:.0%}"
    if service.guard_is_due():
        saw += "; not measured since the newest writes: `trivium tidy` does it"
    return Finding("graph trust", True, saw)


def _table(service: Service) -> Finding:
    table = service.table.table
    if service.table_is_due():
        advice = "run `trivium tidy`: until then a flood of queries waits for the model"
        return Finding("query table", False, "none" if table is None else "fitted to half the corpus", advice)
    if table is None:
        return Finding("query table", True, "none, and too few documents to need one")
    return Finding("query table", True, f"agrees with the model on {table.agreement:.0%} of the ten nearest")
