"""Cached responses are invalidated by every write, before it is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import pytest

from adapters import Scope, Unavailable, Viewer
from adapters.model.protection import UNRESTRICTED
from adapters.ports import VectorRecord
from adapters.ports.replica import Key
from adapters.ports.writer import Acknowledgement
from orchestrator.indexing.data_version import DataVersions
from orchestrator.indexing.invalidation import InvalidatingWriter
from tests.conftest import SCOPE, vector_record
from tests.orchestrator.indexing.counters import MemoryCounters

pytestmark = pytest.mark.anyio

OTHER, THIRD = Scope("other"), Scope("third")


class Writer:
    """Records what is written.

    :param error: raised by every write.
    """

    def __init__(self, versions: DataVersions, error: Exception | None = None) -> None:
        self.has_unapplied = False
        self.during: list[object] = []
        self.written: list[tuple[Sequence[VectorRecord], list[Key], Viewer]] = []
        self._versions = versions
        self._error = error

    async def write(
        self, upserts: Sequence[VectorRecord], deletes: Iterable[Key], viewer: Viewer = UNRESTRICTED
    ) -> Acknowledgement:
        self.during.append(self._versions.current(SCOPE))
        self.has_unapplied = False  # as a replication that caught up
        if self._error:
            raise self._error
        self.written.append((upserts, list(deletes), viewer))
        return Acknowledgement(7, {"two": "away"})


@pytest.fixture
def versions() -> DataVersions:
    return DataVersions([], "", MemoryCounters())


def changed(versions: DataVersions, before: dict[Scope, object]) -> set[Scope]:
    return {scope for scope, version in before.items() if versions.current(scope) != version}


def current(versions: DataVersions) -> dict[Scope, object]:
    return {scope: versions.current(scope) for scope in (SCOPE, OTHER, THIRD)}


async def test_the_write_is_passed_on_and_so_is_the_acknowledgement(versions: DataVersions) -> None:
    writer = Writer(versions)
    record, key = vector_record("a"), ("default", "default", "b")
    deletes = iter([key])  # it is read once
    acknowledgement = await InvalidatingWriter(writer, versions, lambda: False).write(
        [record], deletes, Viewer("sensitive")
    )
    assert acknowledgement == Acknowledgement(7, {"two": "away"})
    assert writer.written == [([record], [key], Viewer("sensitive"))]


async def test_the_version_changes_after_the_data_and_before_the_acknowledgement(versions: DataVersions) -> None:
    """Before the data, a search in between would cache the old documents under the new version."""
    writer, before = Writer(versions), versions.current(SCOPE)
    await InvalidatingWriter(writer, versions, lambda: False).write([vector_record("a")], [])
    assert writer.during == [before]
    assert versions.current(SCOPE) != before


async def test_the_scopes_of_upserts_and_deletes_are_invalidated_and_no_other(versions: DataVersions) -> None:
    writer, before = InvalidatingWriter(Writer(versions), versions, lambda: False), current(versions)
    await writer.write([vector_record("a", scope=SCOPE)], [(OTHER.tenant, OTHER.environment, "b")])
    assert changed(versions, before) == {SCOPE, OTHER}


async def test_a_failed_write_invalidates_too(versions: DataVersions) -> None:
    writer = InvalidatingWriter(Writer(versions, Unavailable("half of it is done")), versions, lambda: False)
    before = current(versions)
    with pytest.raises(Unavailable, match="half of it is done"):
        await writer.write([vector_record("a")], [])
    assert changed(versions, before) == {SCOPE}


async def test_a_write_that_applies_earlier_ones_invalidates_every_scope(versions: DataVersions) -> None:
    """Whether writes wait is read before the write: afterwards they are applied."""
    writer = Writer(versions)
    writer.has_unapplied = True
    invalidating, before = InvalidatingWriter(writer, versions, lambda: writer.has_unapplied), current(versions)
    await invalidating.write([vector_record("a")], [])
    assert changed(versions, before) == {SCOPE, OTHER, THIRD}
    before = current(versions)
    await invalidating.write([vector_record("a")], [])
    assert changed(versions, before) == {SCOPE}


async def test_a_cancelled_write_invalidates_too(versions: DataVersions) -> None:
    """The client is disconnected, and the documents may be written all the same."""
    reached = asyncio.Event()

    class Stalled:
        async def write(
            self, upserts: Sequence[VectorRecord], deletes: Iterable[Key], viewer: Viewer = UNRESTRICTED
        ) -> Acknowledgement:
            reached.set()
            await asyncio.Event().wait()
            raise AssertionError

    before = current(versions)
    writing = asyncio.create_task(
        InvalidatingWriter(Stalled(), versions, lambda: False).write([vector_record("a")], [])
    )
    await reached.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert changed(versions, before) == {SCOPE}
