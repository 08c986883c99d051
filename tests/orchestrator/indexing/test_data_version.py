"""The version of the data: it changes with the documents of a scope, and only then."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import Scope
from orchestrator.indexing.data_version import DataVersions
from tests.conftest import SCOPE
from tests.orchestrator.indexing.counters import MemoryCounters

pytestmark = pytest.mark.anyio

OTHER = Scope("other")


@dataclass
class Local:
    """Something that this process searches in its own files."""

    version: int = 1

    def data_version(self) -> int:
        return self.version


async def test_without_counters_the_version_is_that_of_the_local_files() -> None:
    one, two = Local(), Local()
    versions = DataVersions([one, two], "here", None)
    seen = {versions.current(SCOPE)}
    assert versions.current(OTHER) in seen  # the files are those of all scopes
    for local in (one, two, one):
        local.version += 1
        assert versions.current(SCOPE) not in seen
        seen.add(versions.current(SCOPE))
    assert await versions.ensure_loaded(SCOPE)
    await versions.advance([SCOPE])
    assert versions.current(SCOPE) in seen  # there is nothing to advance: the files have their own numbers


def test_the_same_numbers_of_two_local_files_are_not_exchangeable() -> None:
    assert DataVersions([Local(1), Local(2)], "x", None).current(SCOPE) != (
        DataVersions([Local(2), Local(1)], "x", None).current(SCOPE)
    )


def test_the_same_numbers_of_another_installation_are_another_version() -> None:
    """Two data folders may share one Redis."""
    counters = MemoryCounters()
    versions = [DataVersions([Local()], name, counters).current(SCOPE) for name in ("here", "there", "here")]
    assert versions[0] == versions[2] != versions[1]


async def test_advancing_a_scope_changes_no_other_scope() -> None:
    versions = DataVersions([], "", MemoryCounters())
    before, other_before = versions.current(SCOPE), versions.current(OTHER)
    await versions.advance([SCOPE])
    assert versions.current(SCOPE) != before
    assert versions.current(OTHER) == other_before


async def test_advancing_all_scopes_changes_every_scope() -> None:
    versions = DataVersions([], "", MemoryCounters())
    before = [versions.current(scope) for scope in (SCOPE, OTHER)]
    await versions.advance([], all_scopes=True)
    assert all(versions.current(scope) != old for scope, old in zip((SCOPE, OTHER), before, strict=True))


names = st.text("ab", max_size=2)
scopes = st.builds(Scope, names, names)


@given(st.lists(st.tuples(st.sets(scopes, max_size=3), st.booleans()), max_size=6), scopes)
def test_a_version_changes_exactly_with_the_writes_that_concern_its_scope(
    writes: list[tuple[set[Scope], bool]], scope: Scope
) -> None:
    versions = DataVersions([], "", MemoryCounters())
    seen = {versions.current(scope)}
    for written, all_scopes in writes:
        before = versions.current(scope)
        anyio.run(versions.advance, written, all_scopes)
        concerned = scope in written or all_scopes
        assert (versions.current(scope) != before) is concerned
        assert (versions.current(scope) in seen) is not concerned  # no version comes back
        seen.add(versions.current(scope))


@pytest.mark.parametrize("is_available", [True, False])
async def test_other_processes_mean_the_same_only_if_the_counters_could_be_loaded(is_available: bool) -> None:
    counters = MemoryCounters()
    counters.is_available = is_available
    assert await DataVersions([], "", counters).ensure_loaded(SCOPE) is is_available


async def test_the_counters_that_decide_a_version_are_the_ones_that_are_loaded() -> None:
    """A counter that is not loaded counts 0 here, and something else in another process."""
    counters = MemoryCounters()
    versions = DataVersions([], "", counters)
    await versions.ensure_loaded(SCOPE)
    loaded, before = set(counters.loaded), versions.current(SCOPE)
    assert len(loaded) == 2
    for name in loaded:
        await counters.increment([name])
        assert versions.current(SCOPE) != before
        before = versions.current(SCOPE)
