"""One state of the index for all stages of a request."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters import Scope
from adapters.engine import EmbeddedIndex
from fusion.columns import Documents
from orchestrator.indexing.data_version import DataVersions
from orchestrator.indexing.snapshots import IndexSnapshots
from tests.conftest import SCOPE, vector_record
from tests.orchestrator.indexing.counters import MemoryCounters

pytestmark = pytest.mark.anyio


@pytest.fixture
def index(open_index: Callable[[], EmbeddedIndex]) -> EmbeddedIndex:
    return open_index()


def embedded(index: EmbeddedIndex) -> IndexSnapshots:
    return IndexSnapshots(DataVersions([index], "", None), index.generation, index.current, None, False)


async def test_a_pinned_state_stays_readable_and_the_same_while_others_write(index: EmbeddedIndex) -> None:
    await index.write([vector_record("a", "old"), vector_record("b")], ())
    snapshot = embedded(index).pin(SCOPE)
    await index.write([vector_record("a", "new"), vector_record("c")], [vector_record("b").record.key])
    await index.write([vector_record("d")], ())
    documents = await snapshot.documents.fetch(SCOPE, Documents.of_ids(["a", "b", "c", "d"]))
    assert {id_: record.document.text for id_, record in documents.items()} == {"a": "old", "b": "text of b"}
    assert (snapshot.generation, snapshot.scope) == (1, SCOPE)
    newest = embedded(index).pin(SCOPE)
    assert set(await newest.documents.fetch(SCOPE, Documents.of_ids(["a", "b", "c", "d"]))) == {"a", "c", "d"}
    assert newest.generation == 3


async def test_sources_and_documents_read_the_same_commit(index: EmbeddedIndex) -> None:
    await index.write([vector_record("a")], ())
    snapshot = embedded(index).pin(SCOPE)
    assert snapshot.view is snapshot.documents is index.current()


async def test_a_commit_of_another_thread_while_pinning_does_not_mix_two_states(index: EmbeddedIndex) -> None:
    """Otherwise a ranking of one state would be memoized, or cached, under the version of another."""
    await index.write([vector_record("a")], ())

    def commit_once() -> int:
        generation = index.generation()
        if generation == 1:
            index.write_blocking([vector_record("b")])
        return generation

    versions = DataVersions([index], "", None)
    snapshot = IndexSnapshots(versions, commit_once, index.current, None, False).pin(SCOPE)
    assert set(await snapshot.documents.fetch(SCOPE, Documents.of_ids(["a", "b"]))) == {"a", "b"}
    assert (snapshot.generation, snapshot.data_version) == (2, versions.current(SCOPE))


async def test_documents_on_a_server_are_read_there(
    index: EmbeddedIndex, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server = EmbeddedIndex(tmp_path_factory.mktemp("server"), (), "t")
    snapshots = IndexSnapshots(DataVersions([], "", None), lambda: 5, index.current, server, True)
    snapshot = snapshots.pin(SCOPE)
    assert snapshot.documents is server
    assert snapshot.view is index.current()
    assert snapshot.generation == 5


def test_without_any_documents_there_is_nothing_to_pin() -> None:
    snapshots = IndexSnapshots(DataVersions([], "", None), lambda: 0, lambda: None, None, True)
    with pytest.raises(ValueError, match="a snapshot needs documents"):
        snapshots.pin(SCOPE)


async def test_a_pinned_commit_never_changes(index: EmbeddedIndex) -> None:
    snapshots = embedded(index)
    snapshot = snapshots.pin(SCOPE)
    await index.write([vector_record("a")], ())
    assert not snapshots.changed(snapshot)


async def test_a_server_may_change_while_it_is_searched_and_only_its_scope_reports_it(index: EmbeddedIndex) -> None:
    versions = DataVersions([], "", MemoryCounters())
    snapshots = IndexSnapshots(versions, lambda: 1, lambda: None, index, True)
    snapshot, other = snapshots.pin(SCOPE), snapshots.pin(Scope("other"))
    assert not snapshots.changed(snapshot)
    await versions.advance([SCOPE])
    assert snapshots.changed(snapshot)
    assert not snapshots.changed(other)
    assert not snapshots.changed(snapshots.pin(SCOPE))
