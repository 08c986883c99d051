"""Admission: how many requests run at once, the order of those that wait, and which are rejected."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.execution.budget import EXPECTED_WAIT, MAX_WAIT
from orchestrator.service.admission import Admission
from orchestrator.service.errors import Overloaded
from tests import virtual_clock

pytestmark = pytest.mark.anyio


class Scenario:
    """An admission and the requests that use it; its clock moves only when the test moves it."""

    def __init__(self, max_concurrent: int = 1, max_waiting: int = 10) -> None:
        self.now = 0.0
        self.admission = Admission(max_concurrent, max_waiting, lambda: self.now)
        self.started: list[str] = []
        self.response_s = 0.0
        """Seconds that a request writes its response, after it has released its slot."""
        self._ends: dict[str, asyncio.Event] = {}

    def request(self, name: str, timeout_s: float = 1_000) -> asyncio.Task[str]:
        """``name`` is a tenant and a number: ``a1``."""
        self._ends[name] = asyncio.Event()
        return asyncio.ensure_future(self._run(name, timeout_s))

    async def _run(self, name: str, timeout_s: float) -> str:
        async with self.admission.slot(name[0], timeout_s):
            self.started.append(name)
            await self._ends[name].wait()
        self.now += self.response_s
        return name

    def let_end(self, name: str) -> None:
        self._ends[name].set()

    async def end(self, name: str) -> None:
        self.let_end(name)
        await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_limited_number_runs_at_once_and_the_others_follow_in_order() -> None:
    scenario = Scenario(max_concurrent=2)
    tasks = [scenario.request(f"a{number}") for number in range(5)]
    await settle()
    assert (scenario.started, scenario.admission.running, scenario.admission.waiting) == (["a0", "a1"], 2, 3)
    await scenario.end("a1")
    assert scenario.started == ["a0", "a1", "a2"]
    for name in ("a0", "a2", "a3", "a4"):
        await scenario.end(name)
    assert [task.result() for task in tasks] == ["a0", "a1", "a2", "a3", "a4"]
    assert (scenario.admission.running, scenario.admission.waiting) == (0, 0)


async def test_tenants_are_served_in_turn_however_many_requests_one_of_them_sends() -> None:
    scenario = Scenario()
    for name in ("a0", "a1", "a2", "a3", "b0", "b1", "c0"):
        scenario.request(name)
    await settle()
    for _ in range(6):
        await scenario.end(scenario.started[-1])
    assert scenario.started == ["a0", "a1", "b0", "c0", "a2", "b1", "a3"]
    await scenario.end("a3")


async def test_a_full_queue_drops_from_the_longest_and_reports_which_tenant_is_over_quota() -> None:
    scenario = Scenario(max_waiting=3)
    scenario.request("a0")
    await settle()
    a1, a2, a3 = (scenario.request(name) for name in ("a1", "a2", "a3"))
    await settle()
    with pytest.raises(Overloaded) as alone:  # no other tenant waits, so the tenant has no more than its share
        await scenario.request("a4")
    assert not alone.value.over_quota
    b1 = scenario.request("b1")
    await settle()
    assert a3.done() and isinstance(error := a3.exception(), Overloaded) and error.over_quota
    with pytest.raises(Overloaded) as greedy:
        await scenario.request("a5")
    assert greedy.value.over_quota
    for name in ("a0", "a1", "b1", "a2"):
        await scenario.end(name)
    assert [each.result() for each in (a1, a2, b1)] == ["a1", "a2", "b1"]


async def test_a_request_that_would_wait_too_long_is_rejected_at_once() -> None:
    scenario = Scenario(max_waiting=1_000)
    for number in range(80):
        scenario.request(f"a{number}")
    await settle()
    for number in range(60):  # each takes a second, which the admission learns
        scenario.now += 1.0
        await scenario.end(f"a{number}")
    for number in range(3):
        scenario.request(f"b{number}")
    await settle()
    assert scenario.admission.waiting == 22
    assert isinstance(scenario.admission.would_reject("a", 40), Overloaded)
    # Another tenant would wait for half of the request that runs, for its own three, and for four of the first tenant.
    # For a tenant with less than its share of the queue, a service time has to be left of the longest wait.
    assert scenario.admission.would_reject("b", (7.5 + 1.2) / MAX_WAIT) is None
    assert isinstance(scenario.admission.would_reject("b", (7.5 + 0.8) / MAX_WAIT), Overloaded)
    with pytest.raises(Overloaded):
        await scenario.request("a80", timeout_s=40)
    scenario.request("a81", timeout_s=1_000)
    scenario.request("b3", timeout_s=40)  # its turn comes after four requests of the other tenant
    await settle()
    assert scenario.admission.waiting == 24
    for _ in range(25):
        await scenario.end(scenario.started[-1])


async def test_what_the_process_does_before_the_next_request_runs_counts_for_those_that_wait() -> None:
    scenario = Scenario(max_waiting=1_000)
    scenario.response_s = 1.0
    for number in range(60):
        scenario.request(f"a{number}")
    await settle()
    for number in range(50):
        scenario.now += 1.0
        await scenario.end(f"a{number}")  # so one ends every two seconds
    for number in range(2):
        scenario.request(f"b{number}")
    await settle()
    assert scenario.admission.waiting == 11
    # It would wait for half of the request that runs, and for five others; and two seconds have to be left.
    assert scenario.admission.would_reject("b", (11.0 + 2.2) / MAX_WAIT) is None
    assert isinstance(scenario.admission.would_reject("b", (11.0 + 1.8) / MAX_WAIT), Overloaded)
    for _ in range(12):
        await scenario.end(scenario.started[-1])


async def test_a_burst_may_wait_as_long_as_its_time_limit_allows() -> None:
    scenario = Scenario(max_waiting=100)
    for number in range(41):  # each takes 5 ms, which the admission learns
        scenario.request(f"a{number}")
        await settle()
        scenario.now += 0.005
        await scenario.end(f"a{number}")
    scenario.now += 1.0
    for number in range(20):
        assert scenario.admission.would_reject("a", 0.15) is None
        scenario.request(f"a{100 + number}")
        await settle()
    assert scenario.admission.waiting == 19
    scenario.now += 0.3  # a slot was not free for so long: this is load, not a burst
    assert isinstance(scenario.admission.would_reject("a", 0.15), Overloaded)


async def test_a_tenant_with_its_share_of_the_queue_is_rejected_before_one_that_has_less() -> None:
    scenario = Scenario()
    for number in range(41):  # each takes a second, which the admission learns
        scenario.request(f"a{number}")
        await settle()
        scenario.now += 1.0
        await scenario.end(f"a{number}")
    for name in ("a41", "a42", "a43", "a44", "a45", "b0", "b1", "b2"):
        scenario.request(name)
    await settle()
    scenario.now += 1.0  # no burst any more
    # Each would wait for half of a request and for seven more, which is between the two limits.
    timeout_s = 14.0
    assert timeout_s * EXPECTED_WAIT < 7.3 < timeout_s * MAX_WAIT - 1.0
    assert isinstance(scenario.admission.would_reject("a", timeout_s), Overloaded)
    assert scenario.admission.would_reject("b", timeout_s) is None
    scenario.request("b3")
    await settle()
    assert timeout_s * EXPECTED_WAIT < 8.5 < timeout_s * MAX_WAIT - 1.0
    assert isinstance(scenario.admission.would_reject("b", timeout_s), Overloaded)  # it has its share now
    for _ in range(9):
        await scenario.end(scenario.started[-1])


async def test_one_slow_request_does_not_reject_those_after_it() -> None:
    scenario = Scenario()
    for number in range(40):
        scenario.request(f"a{number}")
        await settle()
        scenario.now += 0.005 if number < 39 else 10.0
        await scenario.end(f"a{number}")
    scenario.request("a40")
    await settle()
    assert scenario.admission.would_reject("b", 0.15) is None
    await scenario.end("a40")


def test_a_waiting_request_is_rejected_after_three_quarters_of_its_time() -> None:
    async def play() -> None:
        scenario = Scenario()
        scenario.request("a0")
        await settle()
        loop = asyncio.get_running_loop()
        start = loop.time()
        with pytest.raises(Overloaded):
            await scenario.request("a1", timeout_s=0.4)
        assert loop.time() - start == pytest.approx(0.75 * 0.4)
        assert scenario.admission.waiting == 0
        await scenario.end("a0")
        assert (scenario.started, scenario.admission.running) == (["a0"], 0)

    virtual_clock.run(play())


@pytest.mark.parametrize("in_the_same_moment", [False, True])
async def test_a_cancelled_request_takes_no_slot(in_the_same_moment: bool) -> None:
    scenario = Scenario()
    scenario.request("a0")
    await settle()
    cancelled, remaining = scenario.request("a1"), scenario.request("a2")
    await settle()
    if in_the_same_moment:  # the slot is passed on, and the request has not woken up to take it
        scenario.let_end("a0")
        while scenario.admission.waiting == 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
    cancelled.cancel()
    scenario.let_end("a0")
    await settle()
    assert scenario.started in (["a0", "a2"], ["a0", "a1", "a2"])
    await scenario.end("a2")
    assert (remaining.result(), scenario.admission.running, scenario.admission.waiting) == ("a2", 0, 0)
    assert cancelled.cancelled()


async def test_a_request_that_fails_releases_its_slot() -> None:
    admission = Admission(1, 1)
    for _ in range(3):
        with pytest.raises(ValueError):
            async with admission.slot("a", 1):
                raise ValueError
    assert admission.running == 0


@given(
    st.lists(st.sampled_from(["request a", "request b", "request c", "end", "cancel"]), max_size=60),
    st.integers(1, 3),
    st.integers(0, 4),
)
def test_slots_are_never_lost_nor_given_twice(steps: list[str], max_concurrent: int, max_waiting: int) -> None:
    async def play() -> None:
        scenario = Scenario(max_concurrent, max_waiting)
        tasks: dict[str, asyncio.Task[str]] = {}
        for number, step in enumerate(steps):
            running = [name for name in scenario.started if not tasks[name].done()]
            match step.split():
                case ["request", tenant]:
                    tasks[f"{tenant}{number}"] = scenario.request(f"{tenant}{number}")
                case ["end"] if running:
                    scenario.let_end(running[0])
                case ["cancel"] if tasks:
                    list(tasks.values())[number % len(tasks)].cancel()
            await asyncio.sleep(0)
            assert scenario.admission.running <= max_concurrent
            assert scenario.admission.waiting <= max_waiting
        await settle()
        while running := [name for name in scenario.started if not tasks[name].done()]:
            assert len(running) <= max_concurrent
            for name in running:
                scenario.let_end(name)
            await settle()
        assert all(task.done() for task in tasks.values())
        assert (scenario.admission.running, scenario.admission.waiting) == (0, 0)
        for task in tasks.values():
            if not task.cancelled():
                task.exception()

    asyncio.run(play())
