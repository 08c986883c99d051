"""One look for many who ask."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.recent import Recent

pytestmark = pytest.mark.anyio


async def test_many_who_ask_at_once_and_soon_after_look_once() -> None:
    now, looks = [0.0], 0

    async def look() -> int:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)
        return looks

    recent = Recent(look, 1.0, lambda: now[0])
    assert await asyncio.gather(*(recent.get() for _ in range(50))) == [1] * 50
    now[0] = 0.9
    assert await recent.get() == 1
    now[0] = 1.0
    assert await asyncio.gather(*(recent.get() for _ in range(50))) == [2] * 50


async def test_what_fails_is_not_kept() -> None:
    answers: list[Exception | str] = [OSError("away"), "here"]

    async def look() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    recent = Recent(look, 1.0)
    with pytest.raises(OSError, match="away"):
        await recent.get()
    assert await recent.get() == "here"
