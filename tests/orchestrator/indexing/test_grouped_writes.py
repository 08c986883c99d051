"""Writes that wait at the same time are combined, and each gets its own part of the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import Unavailable, Viewer
from adapters.model.protection import UNRESTRICTED
from adapters.ports import VectorRecord
from adapters.ports.replica import Key
from adapters.ports.writer import Acknowledgement
from orchestrator.indexing.grouped_writes import GroupedWriter
from tests.conftest import vector_record

pytestmark = pytest.mark.anyio


class Store:
    """Applies writes in order. The first waits until ``begin`` is set."""

    def __init__(self, hidden: Iterable[Key] = (), failure: Exception | None = None) -> None:
        self.begin = asyncio.Event()
        self.texts: dict[Key, str] = {}
        self.writes: list[tuple[int, int, Viewer]] = []
        self._hidden, self._failure = frozenset(hidden), failure

    async def write(
        self, upserts: Sequence[VectorRecord], deletes: Iterable[Key], viewer: Viewer = UNRESTRICTED
    ) -> Acknowledgement:
        await self.begin.wait()
        deleted = list(deletes)
        self.writes.append((len(upserts), len(deleted), viewer))
        if self._failure:
            raise self._failure
        self.texts |= {each.record.key: each.record.document.text for each in upserts}
        for key in deleted:
            self.texts.pop(key, None)
        rejected = {each.record.key: {"store": "no"} for each in upserts if each.record.document.text == "bad"}
        return Acknowledgement(len(self.writes), rejected=rejected, hidden=self._hidden)


def record(id_: str, text: str = "x") -> VectorRecord:
    return vector_record(id_, text)


def key(id_: str) -> Key:
    return record(id_).record.key


async def test_writes_that_wait_are_one_write() -> None:
    store = Store()
    writer = GroupedWriter(store)
    tasks = [asyncio.create_task(writer.write([], [key(str(n))])) for n in range(100)]
    await asyncio.sleep(0)
    store.begin.set()
    assert [(await task).generation for task in tasks] == [1] + 99 * [2]
    assert store.writes == [(0, 1, UNRESTRICTED), (0, 99, UNRESTRICTED)]


async def test_writers_who_do_not_see_the_same_are_not_combined() -> None:
    store = Store()
    writer = GroupedWriter(store)
    alice, bob = (Viewer("normal", user) for user in ("alice", "bob"))
    viewers = [Viewer("normal"), Viewer("normal"), Viewer("normal"), Viewer("public"), alice, alice, bob]
    tasks = [asyncio.create_task(writer.write([], [key("a")], each)) for each in viewers]
    await asyncio.sleep(0)
    store.begin.set()
    await asyncio.gather(*tasks)
    assert [viewer for *_, viewer in store.writes] == [viewers[0], viewers[0], Viewer("public"), alice, bob]


async def test_a_group_has_at_most_a_thousand_documents() -> None:
    store = Store()
    writer = GroupedWriter(store)
    sizes = [1, 600, 500, 2_000, 1]
    tasks = [asyncio.create_task(writer.write([record(f"{n}-{i}") for i in range(s)], [])) for n, s in enumerate(sizes)]
    await asyncio.sleep(0)
    store.begin.set()
    await asyncio.gather(*tasks)
    assert [count for count, *_ in store.writes] == [1, 600, 500, 2_000, 1]


async def test_each_write_learns_what_became_of_its_own_documents() -> None:
    store = Store(hidden=[key("a"), key("b")])
    writer = GroupedWriter(store)
    first = asyncio.create_task(writer.write([record("x")], []))
    second = asyncio.create_task(writer.write([record("c", "bad")], [key("a")]))
    third = asyncio.create_task(writer.write([record("d")], [key("b")]))
    await asyncio.sleep(0)
    store.begin.set()
    assert (await first).hidden == frozenset()
    assert ((await second).hidden, list((await second).rejected)) == ({key("a")}, [key("c")])
    assert ((await third).hidden, (await third).rejected) == ({key("b")}, {})


async def test_a_failure_is_that_of_every_write_of_the_group() -> None:
    store = Store(failure=Unavailable("the disk is full"))
    writer = GroupedWriter(store)
    tasks = [asyncio.create_task(writer.write([record(str(n))], [])) for n in range(3)]
    await asyncio.sleep(0)
    store.begin.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(each) for each in outcomes] == 3 * ["the disk is full"]


async def test_a_write_whose_caller_leaves_before_it_begins_is_not_made() -> None:
    store = Store()
    writer = GroupedWriter(store)
    first = asyncio.create_task(writer.write([record("a")], []))
    await asyncio.sleep(0)
    others = [asyncio.create_task(writer.write([record("b")], [])) for _ in range(2)]  # equal, but for their vectors
    await asyncio.sleep(0)
    others[1].cancel()
    await asyncio.sleep(0)
    store.begin.set()
    await first
    outcomes = await asyncio.gather(*others, return_exceptions=True)
    assert isinstance(outcomes[1], asyncio.CancelledError)
    assert store.writes == [(1, 0, UNRESTRICTED), (1, 0, UNRESTRICTED)]


async def test_the_others_of_a_group_learn_that_it_was_interrupted() -> None:
    store = Store()
    writer = GroupedWriter(store)
    first = asyncio.create_task(writer.write([record("a")], []))
    await asyncio.sleep(0)
    store.begin.set()
    await first
    store.begin.clear()
    blocker = asyncio.create_task(writer.write([record("a")], []))
    await asyncio.sleep(0)
    second, third = (asyncio.create_task(writer.write([record(id_)], [])) for id_ in "bc")
    await asyncio.sleep(0)
    blocker.cancel()
    await asyncio.gather(blocker, return_exceptions=True)
    await asyncio.sleep(0)
    second.cancel()
    outcomes = await asyncio.gather(second, third, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert str(outcomes[1]) == "the write was interrupted: try it again"


@given(
    st.lists(
        st.tuples(st.lists(st.tuples(st.sampled_from("abc"), st.text(max_size=2))), st.lists(st.sampled_from("abc")))
    )
)
def test_the_outcome_is_that_of_the_writes_in_order(writes: list[tuple[list[tuple[str, str]], list[str]]]) -> None:
    async def run() -> None:
        store, one_by_one = Store(), Store()
        one_by_one.begin.set()
        writer = GroupedWriter(store)
        tasks = []
        for upserts, deletes in writes:
            records = list({id_: record(id_, text) for id_, text in upserts}.values())
            deleted = [key(id_) for id_ in deletes if id_ not in dict(upserts)]
            tasks.append(asyncio.create_task(writer.write(records, deleted)))
            await one_by_one.write(records, deleted)
        await asyncio.sleep(0)
        store.begin.set()
        await asyncio.gather(*tasks)
        assert store.texts == one_by_one.texts

    asyncio.run(run())
