"""The verification of a generation, before it may become live, and what is printed of it."""

from __future__ import annotations

from adapters import Unavailable
from orchestrator.cli.terminal import out
from orchestrator.service.generation_switch import Switch
from orchestrator.service.service import Service
from orchestrator.service.verification import Side, Verification, verify

MIN_OVERLAP = 0.5
_ATTEMPTS = 3
"""Documents that are written during a verification may make it fail."""


async def verified(live: Service, target: Service, switching: Switch, min_overlap: float, rejected: int | None) -> None:
    """Bring a generation up to date, compare it with the live one, and print what was found.

    :param rejected: see :meth:`orchestrator.service.verification.Verification.require`.
    :raises Unavailable: if it must not become live.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        await switching.catch_up()
        found = await verify(Side(live.stores, live.search), Side(target.stores, target.search))
        try:
            found.require(min_overlap, rejected)
        except Unavailable:
            if attempt < _ATTEMPTS:
                continue
            _print(found)
            raise
        _print(found)
        return


def _print(found: Verification) -> None:
    counts = ", ".join(f"{store} {count}" for store, count in found.counts.items())
    out.print(
        f"documents: {counts}; {found.sampled - len(found.different)} of {found.sampled} sampled documents are the "
        f"same; searches find {found.overlap:.0%} of the live hits ({found.queries} queries)",
        highlight=False,
        soft_wrap=True,
    )
