"""Turns to work: how many at once, who waits for whom, who is refused."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.admission import Admission, Overloaded

pytestmark = pytest.mark.anyio


class Work:
    """Work that ends when it is told to."""

    def __init__(self, name: str, began: list[str]) -> None:
        self.name, self._began, self.end = name, began, asyncio.Event()

    async def __call__(self) -> str:
        self._began.append(self.name)
        await self.end.wait()
        return self.name


class Stage:
    """An admission with work on it; its clock stands still unless moved."""

    def __init__(self, at_once: int = 1, waiting: int = 10) -> None:
        self.now = 0.0
        self.admission = Admission(at_once, waiting, lambda: self.now)
        self.began: list[str] = []
        self.works: dict[str, Work] = {}

    def ask(self, name: str, seconds: float = 1_000) -> asyncio.Task[str]:
        """``name`` is a tenant and a number: ``a1``."""
        work = self.works[name] = Work(name, self.began)
        return asyncio.ensure_future(self.admission.run(name[0], seconds, work))

    async def end(self, name: str) -> None:
        self.works[name].end.set()
        await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_no_more_than_so_many_at_once_and_the_others_in_order() -> None:
    stage = Stage(at_once=2)
    tasks = [stage.ask(f"a{number}") for number in range(5)]
    await settle()
    assert (stage.began, stage.admission.working, stage.admission.waiting) == (["a0", "a1"], 2, 3)
    await stage.end("a1")
    assert stage.began == ["a0", "a1", "a2"]
    for name in ("a0", "a2", "a3", "a4"):
        await stage.end(name)
    assert [task.result() for task in tasks] == ["a0", "a1", "a2", "a3", "a4"]
    assert (stage.admission.working, stage.admission.waiting) == (0, 0)


async def test_tenants_take_turns_however_many_one_of_them_sends() -> None:
    stage = Stage()
    for name in ("a0", "a1", "a2", "a3", "b0", "b1", "c0"):
        stage.ask(name)
    await settle()
    for _ in range(6):
        await stage.end(stage.began[-1])
    assert stage.began == ["a0", "a1", "b0", "c0", "a2", "b1", "a3"]
    await stage.end("a3")


async def test_a_full_queue_drops_from_the_longest_and_tells_whose_fault_it_is() -> None:
    stage = Stage(waiting=3)
    stage.ask("a0")
    await settle()
    a1, a2, a3 = (stage.ask(name) for name in ("a1", "a2", "a3"))
    await settle()
    with pytest.raises(Overloaded) as alone:  # nobody else waits: it is not that it has more than its share
        await stage.ask("a4")
    assert not alone.value.theirs
    b1 = stage.ask("b1")
    await settle()
    assert a3.done() and isinstance(error := a3.exception(), Overloaded) and error.theirs
    with pytest.raises(Overloaded) as greedy:
        await stage.ask("a5")
    assert greedy.value.theirs
    for name in ("a0", "a1", "b1", "a2"):
        await stage.end(name)
    assert [each.result() for each in (a1, a2, b1)] == ["a1", "a2", "b1"]


async def test_who_would_wait_for_too_long_is_refused_at_once() -> None:
    stage = Stage(waiting=1_000)
    for number in range(60):
        stage.ask(f"a{number}")
    await settle()
    for number in range(40):  # one a second, which is learned
        stage.now += 1.0
        await stage.end(f"a{number}")
    assert stage.admission.waiting == 19
    assert isinstance(stage.admission.refusal("a", 40), Overloaded)
    with pytest.raises(Overloaded):
        await stage.ask("a60", seconds=40)
    stage.ask("a61", seconds=1_000)
    stage.ask("b0", seconds=40)  # whose turn comes after one of the others
    await settle()
    assert stage.admission.waiting == 21
    for _ in range(22):
        await stage.end(stage.began[-1])


async def test_who_waits_is_refused_while_there_is_time_to_go_elsewhere() -> None:
    stage = Stage()
    stage.ask("a0")
    await settle()
    began = asyncio.get_running_loop().time()
    with pytest.raises(Overloaded):
        await stage.ask("a1", seconds=0.4)
    assert 0.25 < asyncio.get_running_loop().time() - began < 0.38
    assert stage.admission.waiting == 0
    await stage.end("a0")
    assert (stage.began, stage.admission.working) == (["a0"], 0)


@pytest.mark.parametrize("in_the_same_moment", [False, True])
async def test_who_goes_away_takes_no_turn(in_the_same_moment: bool) -> None:
    stage = Stage()
    stage.ask("a0")
    await settle()
    gone, stays = stage.ask("a1"), stage.ask("a2")
    await settle()
    if in_the_same_moment:  # the turn is given, and nobody has woken to take it
        stage.works["a0"].end.set()
        while stage.admission.waiting == 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
    gone.cancel()
    stage.works["a0"].end.set()
    await settle()
    assert stage.began in (["a0", "a2"], ["a0", "a1", "a2"])
    await stage.end("a2")
    assert (stays.result(), stage.admission.working, stage.admission.waiting) == ("a2", 0, 0)
    assert gone.cancelled()


async def test_what_fails_gives_its_place_back() -> None:
    admission = Admission(1, 1)

    async def fail() -> None:
        raise ValueError

    for _ in range(3):
        with pytest.raises(ValueError):
            await admission.run("a", 1, fail)
    assert admission.working == 0


@given(
    st.lists(st.sampled_from(["ask a", "ask b", "ask c", "end", "cancel"]), max_size=60),
    st.integers(1, 3),
    st.integers(0, 4),
)
def test_whatever_happens_places_are_neither_lost_nor_given_twice(steps: list[str], at_once: int, waiting: int) -> None:
    async def play() -> None:
        stage = Stage(at_once, waiting)
        tasks: dict[str, asyncio.Task[str]] = {}
        for number, step in enumerate(steps):
            running = [name for name in stage.began if not tasks[name].done()]
            match step.split():
                case ["ask", tenant]:
                    tasks[f"{tenant}{number}"] = stage.ask(f"{tenant}{number}")
                case ["end"] if running:
                    stage.works[running[0]].end.set()
                case ["cancel"] if tasks:
                    list(tasks.values())[number % len(tasks)].cancel()
            await asyncio.sleep(0)
            assert stage.admission.working <= at_once
            assert stage.admission.waiting <= waiting
        await settle()
        while running := [name for name in stage.began if not tasks[name].done()]:
            assert len(running) <= at_once
            for name in running:
                stage.works[name].end.set()
            await settle()
        assert all(task.done() for task in tasks.values())
        assert (stage.admission.working, stage.admission.waiting) == (0, 0)
        for task in tasks.values():
            if not task.cancelled():
                task.exception()

    asyncio.run(play())
