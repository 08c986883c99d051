from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from adapters import Link, Scope, Viewer
from adapters.engine import EmbeddedIndex, IndexView, pinned_view
from adapters.engine.columns import Columns, Flags
from adapters.model.filter import access, normal
from adapters.ports import Retriever, Snapshot, SourceQuery, VectorRecord
from fusion.columns import Documents, Ranking
from tests.adapters.source_fixtures import EMBEDDED, source_query
from tests.conftest import SCOPE, vector_record

pytestmark = pytest.mark.anyio
OpenIndex = Callable[[], EmbeddedIndex]


def star(id_: str, text: str = "We saw Alpha Centauri tonight") -> VectorRecord:
    return vector_record(id_, text, seed=1, links=(Link("a", "see"),))


def pinned(query: SourceQuery, view: IndexView) -> SourceQuery:
    return replace(query, snapshot=Snapshot(SCOPE, view.manifest.generation, (), view, view))


def content(ranking: Ranking) -> list[object]:
    return list(ranking)


async def test_a_view_reads_the_documents_of_its_commit(open_index: OpenIndex) -> None:
    index = open_index()
    index.write_blocking([star("a", "before"), star("b", "before")])
    view = index.current()
    index.write_blocking([star("a", "after"), star("c", "after")], [("default", "default", "b")])
    allowed = normal(access(SCOPE, Viewer("normal")))
    for reader, texts in ((view, {"a": "before", "b": "before"}), (index, {"a": "after", "c": "after"})):
        fetched = await reader.fetch(SCOPE, Documents.of_ids(["a", "b", "c"]))
        assert {id_: record.document.text for id_, record in fetched.items()} == texts
        assert {record.document.id for record in await reader.find(allowed, 10)} == set(texts)
        assert {record.document.id for record in await reader.sample(10)} == set(texts)
        assert await reader.counts("collection", allowed) == {"documents": 2}


async def test_documents_of_a_commit_are_read_by_number(open_index: OpenIndex) -> None:
    """Numbers are used only if they are of its own table: in another one a number is another document."""
    index, other = open_index(), Scope("other", "default")
    index.write_blocking([star("a"), star("b")])
    before = index.current()
    index.write_blocking([star("c"), vector_record("a", "of another", scope=other)], [("default", "default", "b")])
    view = index.current()
    keys = (("default", "default", "c"), ("other", "default", "a"))
    documents = Documents(np.array([view.segments.position(key) for key in keys]), view.segments)
    assert documents.ids == ("c", "a")
    assert [record.document.text for record in (await view.fetch(other, documents)).values()] == ["of another"]
    assert set(await view.fetch(SCOPE, documents)) == {"c"}
    assert set(await view.fetch(SCOPE, Documents(np.arange(2), before.segments))) == {"a"}
    assert set(await before.fetch(SCOPE, Documents(np.arange(2), before.segments))) == {"a", "b"}


async def test_values_are_counted_once_for_each_commit_and_filter(
    open_index: OpenIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = 0
    count = Columns.counts

    def spy(columns: Columns, field: str, flags: Flags) -> dict[str, int]:
        nonlocal counted
        counted += 1
        return count(columns, field, flags)

    monkeypatch.setattr(Columns, "counts", spy)
    index = open_index()
    index.write_blocking([star("a"), vector_record("b", "secret", collection="plans", sensitivity="restricted")])
    normal_access, highest_access = (normal(access(SCOPE, Viewer(clearance))) for clearance in ("normal", "restricted"))
    for _ in range(2):
        counts = await index.counts("collection", normal_access)
        assert counts == {"documents": 1}
        counts.clear()  # the caller's own
        assert await index.counts("collection", highest_access) == {"documents": 1, "plans": 1}
        assert await index.counts("sensitivity", normal_access) == {"normal": 1}
    assert counted == 3
    index.write_blocking([star("c")])
    assert await index.counts("collection", normal_access) == {"documents": 2}
    assert counted > 3


@pytest.mark.parametrize(("chars", "turns"), [(10, 0), (300_000, 3)])
async def test_other_tasks_have_a_turn_after_each_large_record(open_index: OpenIndex, chars: int, turns: int) -> None:
    index = open_index()
    index.write_blocking([star(id_, "x" * chars) for id_ in "abc"])
    reads = [
        index.fetch(SCOPE, Documents.of_ids(["a", "b", "c"])),
        index.find(normal(access(SCOPE, Viewer("normal"))), 10),
    ]
    for read in reads:
        running = read.__await__()
        suspended = 0
        with pytest.raises(StopIteration) as stopped:
            while next(running) is None:
                suspended += 1
        assert suspended == turns
        assert len(stopped.value.value) == 3


async def test_a_view_outlives_the_removal_of_its_files(open_index: OpenIndex) -> None:
    """After two more commits its files are removed; they stay mapped."""
    index = open_index()
    index.write_blocking([star("a", "before")])
    view = index.current()
    for n in range(5):
        index.write_blocking([star("a", f"after {n}")])
    index.optimize()
    assert view.segments.record(0).document.text == "before"
    assert view.segments.count == 1


@pytest.mark.parametrize("source", EMBEDDED)
async def test_a_pinned_query_does_not_see_later_writes(open_index: OpenIndex, source: str) -> None:
    index = open_index()
    index.write_blocking([star("a"), star("b")])
    retriever: Retriever = EMBEDDED[source](index)
    query = pinned(source_query(), index.current())
    before = content(await retriever.search(query))
    assert len(before) == 2
    index.write_blocking([star("c"), star("d")], [("default", "default", "b")])
    index.optimize()
    assert content(await retriever.search(query)) == before
    assert set((await retriever.search(source_query())).ids) == {"a", "c", "d"}


async def test_entities_are_looked_up_in_the_pinned_view(open_index: OpenIndex) -> None:
    index = open_index()
    index.write_blocking([star("a")])
    graph = EMBEDDED["embedded graph"](index)
    query = pinned(source_query(), index.current())
    index.write_blocking([], [("default", "default", "a")])
    assert await graph.mentions_entity(query)  # type: ignore[attr-defined]
    assert not await graph.mentions_entity(source_query())  # type: ignore[attr-defined]


def test_a_query_without_a_snapshot_reads_the_newest_view(open_index: OpenIndex) -> None:
    index = open_index()
    assert pinned_view(index, source_query()) is index.current()
    view = index.current()
    index.write_blocking([star("a")])
    assert pinned_view(index, source_query()) is index.current() is not view
    assert pinned_view(index, pinned(source_query(), view)) is view
