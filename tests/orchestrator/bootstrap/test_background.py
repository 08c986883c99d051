"""Background tasks: repeated for ever, whatever they raise."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from orchestrator.bootstrap.background import follow, repeat
from tests import virtual_clock

STEP_S = 0.001


async def run_for(task: Coroutine[Any, Any, None], seconds: float) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await task


def test_work_is_repeated_at_the_interval_and_starts_at_once() -> None:
    times: list[float] = []

    async def work() -> None:
        times.append(asyncio.get_running_loop().time())

    virtual_clock.run(run_for(repeat(work, 2.0, "work")(), 7.0))
    assert times == [0.0, 2.0, 4.0, 6.0]


def test_the_interval_is_between_the_end_of_one_work_and_the_start_of_the_next() -> None:
    """So work that takes longer than the interval never runs twice at a time."""
    times: list[float] = []

    async def work() -> None:
        times.append(asyncio.get_running_loop().time())
        await asyncio.sleep(3.0)

    virtual_clock.run(run_for(repeat(work, 2.0, "work")(), 11.0))
    assert times == [0.0, 5.0, 10.0]


def test_work_that_fails_is_logged_and_repeated(caplog: pytest.LogCaptureFixture) -> None:
    count = 0

    async def work() -> None:
        nonlocal count
        count += 1
        if count < 3:
            raise OSError("away")

    with caplog.at_level(logging.ERROR):
        virtual_clock.run(run_for(repeat(work, 2.0, "applying waiting writes")(), 7.0))
    assert count == 4
    assert caplog.messages == ["applying waiting writes failed"] * 2
    assert "away" in caplog.text


def test_work_ends_when_it_is_cancelled() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    async def run() -> None:
        with pytest.raises(asyncio.CancelledError):
            await repeat(work, 2.0, "work")()

    virtual_clock.run(run())


@pytest.mark.anyio
async def test_following_calls_in_a_thread_and_goes_on_after_errors(caplog: pytest.LogCaptureFixture) -> None:
    threads: list[threading.Thread] = []
    third = asyncio.Event()
    loop = asyncio.get_running_loop()

    def refresh() -> None:
        threads.append(threading.current_thread())
        if len(threads) == 3:
            loop.call_soon_threadsafe(third.set)
        raise OSError("damaged")

    with caplog.at_level(logging.ERROR):
        task = asyncio.create_task(follow(refresh, STEP_S)())
        await asyncio.wait_for(third.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert threading.main_thread() not in threads
    assert caplog.messages[:2] == ["reading what another process has written failed: OSError"] * 2
    assert "damaged" in caplog.text


@pytest.mark.anyio
async def test_following_does_not_block_the_event_loop() -> None:
    """A manifest on a slow disk must not stop the requests."""
    entered, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def refresh() -> None:
        loop.call_soon_threadsafe(entered.set)
        assert release.wait(20)

    task = asyncio.create_task(follow(refresh, STEP_S)())
    try:
        await asyncio.wait_for(entered.wait(), 20)  # the loop runs while the refresh waits
    finally:
        release.set()
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_following_waits_for_the_interval_first() -> None:
    """The service has just been opened, so there is nothing to read yet."""

    def refresh() -> None:
        pytest.fail("called before the interval was over")

    virtual_clock.run(run_for(follow(refresh, 2.0)(), 1.9))
