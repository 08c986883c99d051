"""Who has the lock next, and that one holder runs in each turn of the event loop."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.execution.fair_queue import FairLock, FairSlots

pytestmark = pytest.mark.anyio


class Holders:
    """Tasks that take a lock, in the order in which they had it; each with the event loop's turn in which it had it."""

    def __init__(self) -> None:
        self.lock = FairLock()
        self.names: list[str] = []
        self.turns: list[int] = []
        self._turn = 0

    def start(self, name: str) -> asyncio.Task[None]:
        """``name`` is a tenant and a number: ``a1``."""
        return asyncio.ensure_future(self._hold(name))

    async def _hold(self, name: str) -> None:
        async with self.lock.turn_of(name[0]):
            self.names.append(name)
            self.turns.append(self._turn)

    async def finish(self) -> None:
        for _ in range(30):
            await asyncio.sleep(0)
            self._turn += 1


async def test_the_tenants_take_turns_and_only_one_holder_runs_in_each_turn_of_the_loop() -> None:
    holders = Holders()
    async with holders.lock.turn_of("x"):
        for name in ("a1", "a2", "a3", "b1", "c1"):
            holders.start(name)
        await asyncio.sleep(0)
    await holders.finish()
    assert holders.names == ["a1", "b1", "c1", "a2", "a3"]
    assert len(set(holders.turns)) == len(holders.turns)


async def test_one_that_is_cancelled_leaves_the_queue() -> None:
    holders = Holders()
    async with holders.lock.turn_of("x"):
        tasks = [holders.start(name) for name in ("a1", "a2", "b1")]
        await asyncio.sleep(0)
        tasks[0].cancel()
    await holders.finish()
    assert holders.names == ["a2", "b1"]


async def test_one_that_is_cancelled_when_its_turn_has_come_passes_it_on() -> None:
    holders = Holders()
    async with holders.lock.turn_of("x"):
        first, _ = holders.start("a1"), holders.start("a2")
        await asyncio.sleep(0)
    first.cancel()  # the lock was passed to it a moment ago
    await holders.finish()
    assert holders.names == ["a2"]
    async with asyncio.timeout(1), holders.lock.turn_of("x"):
        pass


async def test_an_error_inside_frees_the_lock() -> None:
    holders = Holders()
    with pytest.raises(RuntimeError):
        async with holders.lock.turn_of("x"):
            raise RuntimeError
    holders.start("a1")
    await holders.finish()
    assert holders.names == ["a1"]


async def test_slots_are_as_many_as_their_limit_says_now() -> None:
    limit, running, most = 1, 0, 0
    slots = FairSlots(lambda: limit)
    order: list[str] = []

    async def work(tenant: str) -> None:
        nonlocal running, most, limit
        async with slots.slot(tenant, 10):
            running, most = running + 1, max(most, running + 1)
            order.append(tenant)
            await asyncio.sleep(0.001)
            running -= 1
            if len(order) == 4:
                limit = 3

    async with asyncio.TaskGroup() as group:
        for tenant in "aaaaaabb":
            group.create_task(work(tenant))
    assert most == 3
    assert order[:4] == ["a", "a", "b", "a"]  # they take turns


async def test_a_slot_that_is_not_free_in_time_is_none() -> None:
    slots = FairSlots(lambda: 1)
    async with slots.slot("a", 1):
        with pytest.raises(TimeoutError):
            async with slots.slot("b", 0.001):
                raise AssertionError
    async with slots.slot("b", 0.001):
        pass
