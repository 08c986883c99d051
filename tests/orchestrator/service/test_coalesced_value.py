"""One load for many callers."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.service.coalesced_value import CoalescedTtlValue

pytestmark = pytest.mark.anyio


async def test_callers_at_the_same_time_and_soon_after_cause_one_load() -> None:
    now, loads = [0.0], 0

    async def load() -> int:
        nonlocal loads
        loads += 1
        await asyncio.sleep(0)
        return loads

    value = CoalescedTtlValue(load, 1.0, lambda: now[0])
    assert await asyncio.gather(*(value.get() for _ in range(50))) == [1] * 50
    now[0] = 0.9
    assert await value.get() == 1
    now[0] = 1.0
    assert await asyncio.gather(*(value.get() for _ in range(50))) == [2] * 50


async def test_an_error_is_not_stored() -> None:
    outcomes: list[Exception | str] = [OSError("away"), "here"]

    async def load() -> str:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    value = CoalescedTtlValue(load, 1.0)
    with pytest.raises(OSError, match="away"):
        await value.get()
    assert await value.get() == "here"
