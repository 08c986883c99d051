"""A generation is built beside the live one, brought up to date, and made live."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from shutil import copytree

import anyio
import anyio.to_thread
import msgspec
import pytest

from adapters import Document, Link, Unavailable, VersionMismatch
from adapters.engine import EmbeddedIndex
from adapters.storage import files
from fusion.doc_ids import doc_id
from orchestrator.bootstrap import open_service
from orchestrator.bootstrap.dropped_generation import drop_generation
from orchestrator.bootstrap.other_generations import open_live, open_other
from orchestrator.indexing.generations.catalog import Catalog, Generation
from orchestrator.planning.errors import BadRequest
from orchestrator.service.generation_switch import Switch
from orchestrator.service.verification import Side, verify
from orchestrator.settings import Settings
from tests.orchestrator.bootstrap.helpers import index, search
from tests.orchestrator.generations.helpers import built, contents, opened, switched

pytestmark = pytest.mark.anyio

DOCUMENTS = [
    Document(
        id=f"d{n}",
        title=f"Lake {n}",
        text=f"The lake number {n} is {'deep' if n % 2 else 'shallow'}, and lies near lake {(n + 1) % 100}.",
        links=(Link(f"d{(n + 1) % 100}", "near"),),
    )
    for n in range(100)
]
QUERIES = ("deep lake", "Lake 7", "near lake 42", "what is shallow?")


async def answers(settings: Settings) -> list[bytes]:
    """The responses of the live generation, but for what differs each time."""
    found = []
    async with open_service(settings) as service:
        for query in QUERIES:
            response = await search(service, query, mode="hybrid", explain=True)
            plain = msgspec.structs.replace(response, took_ms=0, timings_ms={}, request_id="", query_id="")
            found.append(msgspec.json.encode(plain))
    return found


async def test_it_has_all_documents_and_becomes_live_and_the_old_one_comes_back(chosen: Settings) -> None:
    async with open_service(chosen) as service:
        await index(service, DOCUMENTS)
        before = await contents(service)
    old = await answers(chosen)
    titled = chosen.changed(embedding_text=("title",))
    generation = await built(titled)
    assert generation.name == "trivium_default_all_2"
    assert await answers(chosen) == old  # until it is live
    await switched(titled, generation.version)
    async with open_service(titled) as service:
        after = await contents(service)
        assert after.keys() == before.keys()
        assert all(after[key][0] == before[key][0] for key in before)
        explained = (await search(service, "lake", explain=True)).explain
        assert explained.generation == generation.name
        assert "~t+" in service.search.build_id()
    new = await answers(chosen)
    assert new != old
    assert new == await answers(titled)  # a generation keeps the settings that it was built with
    await switched(titled, 1)
    assert await answers(titled) == old
    await switched(titled, generation.version)
    assert await answers(titled) == new


async def test_writes_and_deletes_meanwhile_are_in_both_generations(chosen: Settings) -> None:
    async with open_service(chosen) as service:
        await index(service, DOCUMENTS)
    titled = chosen.changed(embedding_text=("title",))
    changed = Document(id="d3", text="This one was changed.")
    async with AsyncExitStack() as stack, open_service(chosen) as writer:
        build = await opened(stack, titled)
        await index(writer, [Document(id="new", text="This one is new.")])
        await build.encode(0)
        await index(writer, [changed])
        await writer.documents.delete("d4", writer.anonymous, None)
        await build.write()
        await writer.documents.delete("d5", writer.anonymous, None)
        assert await build.switching.catch_up() == 4
        assert await build.switching.catch_up() == 0
        one, other = await contents(build.live, False), await contents(build.target, False)
        assert one == other
        assert len(one) == 99
        await build.switching.run()
        with pytest.raises(Unavailable, match="another generation of the index has become live"):
            await index(writer, [changed])
    async with open_service(chosen) as writer:
        report = await index(writer, [Document(id="later", text="Written to the new one.")])
        assert (await search(writer, "written to the new one", min_generation=report.generation)).hits[0].id == "later"
    await switched(titled, 1)
    async with open_live(chosen) as live, open_other(chosen, Catalog(chosen.storage.data_dir).read().known[1]) as other:
        assert await contents(live, False) == await contents(other, False)
        assert (await search(live, "written to the new one")).hits[0].id == "later"
        assert live.stores.generation() >= other.stores.generation()


@pytest.mark.parametrize("shards", [2, 4])
async def test_the_number_of_shards_changes_nothing(chosen: Settings, tmp_path: Path, shards: int) -> None:
    stored = []
    for number, count in enumerate((1, shards)):
        settings = chosen.changed(data_dir=tmp_path / str(number), embedding_text=("title",))
        async with open_service(chosen.changed(data_dir=tmp_path / str(number))) as service:
            for start in range(0, 100, 20):
                await index(service, DOCUMENTS[start : start + 20])
            await index(service, DOCUMENTS[:10])
        await built(settings, count)
        async with open_other(settings, Catalog(settings.storage.data_dir).read().known[1]) as other:
            stored.append((list((await contents(other)).items()), other.stores.generation()))
    assert stored[0] == stored[1]


async def test_a_write_that_is_not_complete_is_not_taken_for_copied(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its keys are recorded, and the live generation does not show it yet."""
    async with open_service(chosen) as service:
        await index(service, DOCUMENTS)
    generation = await built(chosen)
    recorded, go_on = anyio.Event(), anyio.Event()
    write = EmbeddedIndex.write

    async def waiting(self: EmbeddedIndex, *arguments: object) -> object:
        recorded.set()
        await go_on.wait()
        return await write(self, *arguments)  # type: ignore[arg-type]

    async with AsyncExitStack() as stack, open_service(chosen) as writer:
        build = await stack.enter_async_context(beside(chosen, generation))
        monkeypatch.setattr(EmbeddedIndex, "write", waiting)
        async with anyio.create_task_group() as group:
            group.start_soon(index, writer, [Document(id="d3", text="Changed.")])
            await recorded.wait()
            monkeypatch.undo()
            group.start_soon(build.catch_up)
            await anyio.wait_all_tasks_blocked()
            go_on.set()
        assert build.pending() == 0
        with build.alone():
            await build.run()
    async with open_service(chosen) as service:
        assert (await contents(service))["default", "default", doc_id("d3", "documents")][0].document.text == "Changed."


async def test_only_one_process_switches_and_only_from_the_live_generation(chosen: Settings) -> None:
    async with open_service(chosen) as service:
        await index(service, DOCUMENTS)
    second = await built(chosen)
    async with beside(chosen, second) as first_try, beside(chosen, second) as late:
        with first_try.alone():
            with pytest.raises(Unavailable, match="another process brings a generation up to date"), late.alone():
                pass
            await first_try.run()
        async with open_service(chosen) as service:
            await index(service, [Document(id="new", text="New.")])
        with pytest.raises(Unavailable, match="another generation has just become live"), late.alone():
            pass
    async with open_service(chosen) as service:
        assert len(await contents(service)) == 101


async def test_a_build_goes_on_from_its_origin_when_another_generation_has_become_live(chosen: Settings) -> None:
    async with open_service(chosen) as service:
        await index(service, DOCUMENTS)
        await index(service, DOCUMENTS[:50])  # so that the numbers of documents differ from those of a copy
    second = await built(chosen)
    titled = chosen.changed(embedding_text=("title",))
    async with AsyncExitStack() as stack:
        build = await opened(stack, titled, shards=2)
        await build.encode(0)
    await switched(chosen, second.version)
    async with open_service(chosen) as service:
        await index(service, [Document(id="new", text="New.")])
        await service.documents.delete("d5", service.anonymous, None)
    async with AsyncExitStack() as stack:
        build = await opened(stack, titled, shards=2, is_resumed=True)
        assert build.work.generation.origin_version == 1
        with pytest.raises(BadRequest, match="trivium_default_all_3 is being built from trivium"):
            await drop_generation(chosen, msgspec.structs.replace(build.work.catalog.read().require(1), left_at=0.0))
        await build.encode(1)
        await build.write()
    await switched(titled, 3)
    async with open_service(titled) as service:
        keys = {key[-1] for key in await contents(service)}
        assert keys == {doc_id(id_, "documents") for id_ in ["new", *(each.id for each in DOCUMENTS)]} - {
            doc_id("d5", "documents")
        }


@asynccontextmanager
async def beside(settings: Settings, generation: Generation) -> AsyncIterator[Switch]:
    """The switch from the live generation to another one, opened."""
    catalog = Catalog(settings.storage.data_dir)
    async with open_live(settings) as live, open_other(settings, generation) as target:
        yield Switch(catalog, live.stores, catalog.read().live, target.stores, generation.version)


class Killed(BaseException):
    """Nothing handles it: the work ends where it is raised."""


async def test_after_an_interruption_at_any_point_it_ends_as_without(
    chosen: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted before and after each file that is put in its place."""
    replace, remaining, is_before = files.replace, -1, True

    def counted(*arguments: object, **options: object) -> None:
        nonlocal remaining
        remaining -= 1
        if remaining == 0 and is_before:
            raise Killed
        replace(*arguments, **options)  # type: ignore[arg-type]
        if remaining == 0:
            raise Killed

    async def build(folder: Path, is_resumed: bool) -> None:
        settings = chosen.changed(data_dir=folder, embedding_text=("title",))
        async with AsyncExitStack() as stack:
            work = await opened(stack, settings, is_resumed=is_resumed)
            if work.work.generation.state == "building":
                await work.encode(0)
                await work.write()

    async def outcome(folder: Path) -> object:
        settings = chosen.changed(data_dir=folder)
        known = Catalog(folder).read().known
        async with open_other(settings, known[1]) as other:
            return len(known), known[1].state, list((await contents(other)).items()), other.stores.generation()

    first = tmp_path / "first"
    async with open_service(chosen.changed(data_dir=first)) as service:
        for start in range(0, 100, 50):
            await index(service, DOCUMENTS[start : start + 50])
    copies = [tmp_path / str(number) for number in range(200)]
    await anyio.to_thread.run_sync(copytree, first, tmp_path / "whole")
    monkeypatch.setattr(files, "replace", counted)
    remaining = 10**9
    await build(tmp_path / "whole", is_resumed=False)
    writes = 10**9 - remaining
    expected = await outcome(tmp_path / "whole")
    for number in range(1, writes + 1):
        for is_before in (True, False):
            folder = copies.pop()
            await anyio.to_thread.run_sync(copytree, first, folder)
            remaining = number
            with pytest.raises(BaseException):  # noqa: B017
                await build(folder, is_resumed=False)
            remaining = -1
            await build(folder, is_resumed=True)
            assert await outcome(folder) == expected, (number, is_before)


async def test_it_is_verified(chosen: Settings) -> None:
    async with open_service(chosen) as service:
        await index(service, DOCUMENTS)
    generation = await built(chosen)
    async with open_live(chosen) as live, open_other(chosen, generation) as target:
        sides = Side(live.stores, live.search), Side(target.stores, target.search)
        good = await verify(*sides)
        good.require(1.0, 0)
        assert (good.sampled, good.different, good.queries, good.overlap) == (100, (), 50, 1.0)
        await target.stores.write([], [("default", "default", key[2]) for key in [*(await contents(target))][:60]])
        bad = await verify(*sides)
        with pytest.raises(Unavailable, match="40 documents of 100 are in the new generation, 0 may differ"):
            bad.require(0.0, 0)
        with pytest.raises(Unavailable, match=r"searches find \d+% of the live hits, the minimum is 90%"):
            bad.require(0.9, None)


async def test_one_at_a_time_is_built_and_the_first_can_be_dropped(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_service(chosen) as service:
        await index(service, DOCUMENTS)
    async with AsyncExitStack() as stack:
        await opened(stack, chosen)
    with pytest.raises(BadRequest, match="trivium_default_all_2 is being built: --resume goes on with it"):
        async with AsyncExitStack() as stack:
            await opened(stack, chosen)
    with pytest.raises(BadRequest, match="was begun with other settings"):
        async with AsyncExitStack() as stack:
            await opened(stack, chosen.changed(embedding_text=()), is_resumed=True)
    catalog = Catalog(chosen.storage.data_dir)
    await drop_generation(chosen, catalog.read().known[1])
    generation = await built(chosen)
    assert generation.name == "trivium_default_all_3"
    await switched(chosen, 3)
    first = catalog.read().require(1)
    with pytest.raises(Unavailable, match="trivium was live a moment ago"):
        await drop_generation(chosen, first)
    with pytest.raises(BadRequest, match="is live: it cannot be dropped"):
        await drop_generation(chosen, catalog.read().require(3))
    await drop_generation(chosen, msgspec.structs.replace(first, left_at=0.0))
    assert [each.version for each in catalog.read().known] == [3]
    assert not (chosen.storage.data_dir / "index").exists()
    assert not (catalog.folder / "changes").exists()
    async with open_service(chosen) as service:
        assert (await search(service, "Lake 7")).hits[0].id == "d7"


async def test_other_settings_do_not_change_a_live_index(chosen: Settings, caplog: pytest.LogCaptureFixture) -> None:
    async with open_service(chosen) as service:
        await index(service, DOCUMENTS)
    old = await answers(chosen)
    other = chosen.changed(embedder="none://3", entity_extractor="none://")
    assert await answers(other) == old
    assert "TRIVIUM_EMBEDDER is 'none://3' and the index was built with 'minilm://', which is used" in caplog.text
    assert "`trivium backfill` builds an index with the settings of now" in caplog.text
    with pytest.raises(VersionMismatch, match="TRIVIUM_EMBEDDER is 'none://3'"):
        async with open_service(other.changed(strict_index=True)):
            pass
    async with open_service(other) as service:
        await index(service, [Document(id="x", text="It is still written with the old encoder.")])
        assert (await search(service, "old encoder", mode="vector")).hits[0].id == "x"


async def test_a_generation_with_an_encoder_of_a_user_is_used_although_the_settings_want_the_static_one(
    chosen: Settings,
) -> None:
    given = chosen.changed(embedder="none://2")
    async with open_service(given) as service:
        await index(service, [Document(id="a", text="A text.", vector=(1.0, 2.0))])
    async with open_service(chosen.changed(query_encoder="static")) as service:
        assert (await search(service, "text", vector=(1.0, 2.0))).hits[0].id == "a"
