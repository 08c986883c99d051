"""The verification of a generation, before it may become live, and how its result is printed."""

from __future__ import annotations

import anyio.to_thread

from adapters import Unavailable
from orchestrator.cli.terminal import out
from orchestrator.indexing.generations.catalog import Catalog, Generation
from orchestrator.service.backfill import rejected_documents
from orchestrator.service.generation_switch import Switch
from orchestrator.service.service import Service
from orchestrator.service.verification import Side, Verification, verify

MIN_OVERLAP = 0.5
_ATTEMPTS = 3
"""Documents that are written during a verification may make it fail."""


def switch_to(live: Service, target: Service, generation: Generation) -> Switch:
    """The switch from one opened service to another."""
    catalog = Catalog(live.settings.storage.data_dir)
    version = catalog.own_version()
    if version is None:
        raise Unavailable("the live generation was dropped: try again")
    return Switch(catalog, live.stores, version, target.stores, generation.version)


async def verified(live: Service, target: Service, switching: Switch, min_overlap: float) -> None:
    """Bring a generation up to date, compare it with the live one, and print the result.

    :raises Unavailable: if it must not become live.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        await switching.catch_up()
        found = await verify(Side(live.stores, live.search), Side(target.stores, target.search))
        tolerated = await anyio.to_thread.run_sync(_tolerated, switching)
        try:
            found.require(min_overlap, tolerated)
        except Unavailable:
            if attempt < _ATTEMPTS:
                continue
            _print(found)
            raise
        _print(found)
        return


def _tolerated(switching: Switch) -> int | None:
    """How many documents may be in one of the two generations only: those that were rejected, or written meanwhile.

    ``None`` if one of the two was built from files.
    """
    known = switching.catalog.read()
    both = [known.require(version) for version in (switching.live_version, switching.version)]
    if any(each.origin for each in both):
        return None
    return switching.pending() + sum(rejected_documents(switching.catalog.folder_of(each)) for each in both)


def _print(found: Verification) -> None:
    counts = ", ".join(f"{store} {count}" for store, count in found.counts.items())
    out.print(
        f"documents: {counts}; {found.sampled - len(found.different)} of {found.sampled} sampled documents are the "
        f"same; searches find {found.overlap:.0%} of the live hits ({found.queries} queries)",
        highlight=False,
        soft_wrap=True,
    )
