"""The journal and the replication, with stores made to fail; real stores are killed by ``make bench-crash``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from adapters import AdapterError, Entry, Rejected, TimedOut, Unavailable
from adapters.port import Key
from orchestrator.indexing.journal import Journal, Write
from orchestrator.indexing.replicate import Replicator
from tests.conftest import SCOPE, entry

pytestmark = pytest.mark.anyio


class Store:
    """Holds texts by id in memory, and refuses when told to."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}
        self.applied: list[int] = []
        self.prepared = 0
        self.error: AdapterError | None = None
        self.poison: set[str] = set()
        self.most: int | None = None
        self.hangs: anyio.Event | None = None
        self.reached = anyio.Event()

    async def built(self) -> bool:
        return True

    async def prepare(self) -> None:
        if self.error:
            raise self.error
        self.prepared += 1

    async def apply(self, version: int, upserts: Sequence[Entry], deletes: Sequence[Key]) -> None:
        if self.error:
            raise self.error
        if self.hangs:
            self.reached.set()
            await self.hangs.wait()
        if self.most is not None and len(upserts) > self.most:
            raise TimedOut(f"no time for {len(upserts)}")
        if bad := [each.record.document.id for each in upserts if each.record.document.id in self.poison]:
            raise Rejected(f"will not have {bad}")
        self.applied.append(version)
        self.held |= {each.record.document.id: each.record.document.text for each in upserts}
        for _, _, id_ in deletes:
            self.held.pop(id_, None)

    async def count(self) -> int:
        if self.error:
            raise self.error
        return len(self.held)

    async def close(self) -> None:
        pass


@pytest.fixture
def stores() -> dict[str, Store]:
    return {"one": Store(), "two": Store()}


def replicator(folder: Path, stores: dict[str, Store], max_bytes: int = 2**30, patience_s: float = 30.0) -> Replicator:
    return Replicator(Journal(folder / "journal", max_bytes), stores, "t", patience_s)


def key(id_: str) -> Key:
    return SCOPE.tenant, SCOPE.environment, id_


async def test_a_write_reaches_every_store_and_leaves_nothing_in_the_journal(tmp_path: Path, stores) -> None:
    made = replicator(tmp_path, stores)
    first = await made.write([entry("a", "1"), entry("b", "1")], [])
    second = await made.write([entry("a", "2")], [key("b")])
    assert not first.missing
    assert second.generation > first.generation == min(stores["one"].applied)
    assert stores["one"].held == stores["two"].held == {"a": "2"}
    assert list((tmp_path / "journal").glob("*.write")) == []
    assert [made.behind(name) for name in stores] == [0, 0]


async def test_of_one_id_in_one_write_the_last_stands_and_an_entry_beats_a_delete(tmp_path: Path, stores) -> None:
    await replicator(tmp_path, stores).write([entry("a", "1"), entry("a", "2")], [key("a")])
    assert stores["one"].held == {"a": "2"}


async def test_a_store_that_is_away_is_named_and_gets_everything_in_order_later(tmp_path: Path, stores) -> None:
    stores["two"].error = Unavailable("away")
    made = replicator(tmp_path, stores)
    for text in ("1", "2", "3"):
        told = await made.write([entry("a", text)], [])
        assert told.missing == {"two": "away"}
    assert stores["one"].held == {"a": "3"}
    assert [made.behind(name) for name in stores] == [0, 3]
    assert await made.counts() == {"one": 1, "two": "away"}
    stores["two"].error = None
    assert await made.replay() == {}
    assert stores["two"].held == {"a": "3"}
    assert stores["two"].applied == stores["one"].applied == sorted(stores["one"].applied)
    assert list((tmp_path / "journal").glob("*.write")) == []


async def test_a_restart_goes_on_where_it_stopped(tmp_path: Path, stores) -> None:
    stores["two"].error = Unavailable("away")
    first = await replicator(tmp_path, stores).write([entry("a", "1")], [])
    stores["two"].error = None
    made = replicator(tmp_path, stores)
    assert made.generation() == first.generation
    assert await made.replay() == {}
    assert stores["two"].held == {"a": "1"}
    assert len(stores["one"].applied) == 1


async def test_what_was_applied_but_not_noted_is_applied_again(tmp_path: Path, stores) -> None:
    """The crash between a store's yes and our note of it."""
    journal = Journal(tmp_path / "journal", 2**30)
    version = journal.append(Write.of([entry("a", "1")], []), stores)
    await stores["one"].apply(version, [entry("a", "1")], [])
    await replicator(tmp_path, stores).replay()
    assert stores["one"].applied == [version, version]
    assert stores["one"].held == stores["two"].held == {"a": "1"}


@pytest.mark.parametrize("bad", [{7}, {0}, {6, 7}, set(range(7))])
async def test_bad_documents_do_not_keep_the_others_out(tmp_path: Path, stores, bad: set[int]) -> None:
    stores["two"].poison = {str(n) for n in bad}
    made = replicator(tmp_path, stores)
    told = await made.write([entry(str(n)) for n in range(20)], [key("x")])
    assert told.missing == {}
    assert told.refused == {key(str(n)): {"two": f"will not have ['{n}']"} for n in bad}
    assert len(stores["one"].held) == 20
    assert sorted(stores["two"].held, key=int) == [str(n) for n in range(20) if n not in bad]
    assert (await made.write([entry("after")], [])).refused == {}


async def test_a_store_that_refuses_everything_is_at_fault_itself(tmp_path: Path, stores) -> None:
    stores["two"].error = Rejected("nothing at all")
    made = replicator(tmp_path, stores)
    told = await made.write([entry("a"), entry("b")], [])
    assert told.missing == {"two": "nothing at all"}
    assert told.refused == {}
    stores["two"].error = None
    await made.replay()
    assert set(stores["two"].held) == {"a", "b"}


async def test_a_store_that_hangs_holds_up_its_own_writes_alone(tmp_path: Path, stores) -> None:
    """The first write waits for it, as its adapter would let it; those behind it no longer than their patience."""
    stores["two"].hangs = anyio.Event()
    first, second = (replicator(tmp_path, stores, patience_s=0.05) for _ in range(2))
    async with anyio.create_task_group() as group:
        group.start_soon(first.write, [entry("a")], [])
        await stores["two"].reached.wait()
        for writer in (second, first):
            told = await writer.write([entry("b")], [])
            assert told.missing == {"two": "is still being given earlier writes after 0.05 s"}
            assert set(stores["one"].held) == {"a", "b"}
        stores["two"].hangs.set()
    assert await second.replay() == {}
    assert set(stores["two"].held) == {"a", "b"}


async def test_what_a_store_has_no_time_for_is_tried_again_in_smaller_pieces(tmp_path: Path, stores) -> None:
    stores["two"].most = 3
    made = replicator(tmp_path, stores)
    told = await made.write([entry(str(n)) for n in range(20)], [])
    assert told.missing == {"two": "no time for 20"}
    assert await made.replay() == {"two": "no time for 10"}
    assert await made.replay() == {"two": "no time for 5"}
    assert await made.replay() == {}
    assert len(stores["two"].held) == 20


async def test_who_wrote_is_told_what_was_refused_whoever_delivered_it(tmp_path: Path, stores) -> None:
    stores["one"].poison, stores["one"].hangs = {"a"}, anyio.Event()
    writer, other = replicator(tmp_path, stores), replicator(tmp_path, stores)
    told = {}

    async def write(name: str, by: Replicator) -> None:
        told[name] = await by.write([entry(name), entry(f"{name} too")], [])

    async with anyio.create_task_group() as group:
        group.start_soon(write, "before", other)
        await stores["one"].reached.wait()
        for name, by in (("a", writer), ("b", other)):
            group.start_soon(write, name, by)
        await anyio.wait_all_tasks_blocked()
        stores["one"].hangs.set()
    assert told["a"].refused == {key("a"): {"one": "will not have ['a']"}}
    assert told["before"].refused == told["b"].refused == {}
    assert set(stores["one"].held) == {"before", "before too", "a too", "b", "b too"}


def test_what_was_refused_is_kept_for_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrator.indexing import journal

    clock = [10**18]
    monkeypatch.setattr(journal, "time_ns", lambda: clock[-1])
    made = Journal(tmp_path / "journal", 2**30)
    empty = Write.of([], [key("a")])
    refused = made.append(empty, [])
    made.note_refused("one", refused, {key("a"): "no"})
    told = []
    for hours in (1, 26):
        clock.append(clock[0] + hours * 3_600 * 10**9)
        made.advance("one", made.append(empty, []))
        made.sweep(["one"])
        told.append(made.refused(refused))
    assert told == [{key("a"): {"one": "no"}}, {}]


async def test_a_journal_that_is_full_takes_nothing_more_and_says_who_is_behind(tmp_path: Path, stores) -> None:
    stores["two"].error = Unavailable("away")
    made = replicator(tmp_path, stores, max_bytes=10)
    await made.write([entry("a")], [])
    with pytest.raises(Unavailable, match=r"bytes that two could not take yet"):
        await made.write([entry("b")], [])
    assert set(stores["one"].held) == {"a"}


async def test_writers_take_turns_across_processes_and_tasks(tmp_path: Path, stores) -> None:
    one, other = replicator(tmp_path, stores), replicator(tmp_path, stores)
    async with anyio.create_task_group() as group:
        for n in range(10):
            group.start_soon((one, other)[n % 2].write, [entry(str(n))], [])
    assert len(stores["one"].held) == 10
    assert stores["one"].applied == sorted(set(stores["one"].applied))
    one.refresh()
    assert one.generation() == stores["one"].applied[-1]


def test_versions_grow_even_if_the_clock_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrator.indexing import journal

    monkeypatch.setattr(journal, "time_ns", lambda: 5_000)
    made = Journal(tmp_path / "journal", 2**30)
    empty = Write.of([], [key("a")])
    assert [made.append(empty, []) for _ in range(3)] == [5, 6, 7]
    made.advance("one", 7)
    made.sweep(["one"])
    assert made.append(empty, []) == 8


async def test_what_was_delivered_but_not_swept_before_a_crash_is_swept(tmp_path: Path, stores) -> None:
    journal = Journal(tmp_path / "journal", 2**30)
    version = journal.append(Write.of([entry("a")], []), stores)
    for name in stores:
        journal.advance(name, version)
    assert await replicator(tmp_path, stores).replay() == {}
    assert not journal.holds_anything()


async def test_a_store_that_comes_late_has_a_gap(tmp_path: Path, stores) -> None:
    made = replicator(tmp_path, stores)
    await made.write([entry("a")], [])
    assert made.gaps() == []
    stores["late"] = Store()
    made = replicator(tmp_path, stores)
    await made.write([entry("b")], [])
    assert made.gaps() == ["late"]
    assert stores["late"].held == {"b": "text of b"}


async def test_a_defect_in_one_store_does_not_keep_the_others_from_theirs(tmp_path: Path, stores) -> None:
    stores["two"].error = KeyError("ours")  # type: ignore[assignment]
    told = await replicator(tmp_path, stores).write([entry("a")], [])
    assert told.missing == {"two": "internal error: KeyError"}
    assert stores["one"].held == {"a": "text of a"}


async def test_what_is_damaged_is_named(tmp_path: Path, stores) -> None:
    stores["two"].error = Unavailable("away")
    made = replicator(tmp_path, stores)
    await made.write([entry("a")], [])
    (file,) = (tmp_path / "journal").glob("*.write")
    file.write_bytes(b"?")
    stores["two"].error = None
    assert f"{file} cannot be read" in (await made.replay())["two"]


def test_a_write_survives_the_disk() -> None:
    from msgspec import msgpack

    kept = Write.of([entry("a", "text", seed=1), entry("b", seed=2)], [key("c")])
    again = msgpack.decode(msgpack.encode(kept), type=Write)
    assert [each.record for each in again.entries()] == kept.records
    assert again.entries()[1].vector.tolist() == entry("b", seed=2).vector.tolist()
    assert again.deletes == [key("c")]
