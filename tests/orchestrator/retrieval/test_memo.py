"""Memoized rankings and centralities: valid for one data version, one scope and a limited time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from adapters import Scope, Viewer
from adapters.engine import EmbeddedIndex
from adapters.model.filter import Eq, access, normal
from adapters.model.protection import HIGHEST_CLEARANCE, Sensitivity
from adapters.ports import Snapshot, SourceQuery
from fusion.columns import Documents, Ranking
from orchestrator.auth.principal import Principal
from orchestrator.retrieval.memo import Memo, MemoizedCentralities, MemoizedRetriever
from tests.clock import Clock
from tests.conftest import SCOPE, unit, vector_record
from tests.orchestrator.services import (
    PRINCIPAL,
    FixedGraph,
    FixedSource,
    RecordingSource,
    empty_index,
    graph_source,
    request_of,
    search_service,
)

pytestmark = pytest.mark.anyio
QUERY = SourceQuery(
    "alpha", 10, SCOPE, normal(access(SCOPE, Viewer("normal"))), normal(access(SCOPE, Viewer("normal")))
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path)
    await index.write(
        [
            vector_record("a", "Alpha Centauri is a star", seed=1),
            vector_record("s", "Alpha", sensitivity="restricted"),
        ],
        (),
    )
    return index


async def test_a_ranking_is_memoized_while_the_data_stays_the_same(index: EmbeddedIndex, clock: Clock) -> None:
    graph = graph_source(index)
    service = search_service(index, graph=graph, clock=clock, memo_ttl_s=60.0)
    request = request_of(mode="graph")
    for fields in ({}, {"limit": 3}, {"explain": True}, {"boosts": {"centrality": True}}, {"collapse": "none"}):
        await service.search(msgspec.structs.replace(request, **fields), PRINCIPAL, "r")
    assert len(graph.queries) == 1
    await service.search(msgspec.structs.replace(request, filter=Eq("language", "en")), PRINCIPAL, "r")
    await service.search(request, Principal("test", SCOPE, "restricted"), "r")
    await service.search(request, Principal("test", Scope("other"), "normal"), "r")
    assert len(graph.queries) == 4
    await index.write([vector_record("b", "Alpha Centauri")], ())
    assert [hit.id for hit in (await service.search(request, PRINCIPAL, "r")).hits] == ["a", "b"]
    assert len(graph.queries) == 5
    clock.now += 61.0  # a write of another machine is not reported while Redis is away
    await service.search(request, PRINCIPAL, "r")
    assert len(graph.queries) == 6


class CountingGraph(FixedGraph):
    """The same centralities every time, and the number of calls."""

    calls = 0

    async def centralities(
        self,
        scope: Scope,
        ids: Sequence[str],
        snapshot: Snapshot | None = None,
        clearance: Sensitivity = HIGHEST_CLEARANCE,
    ) -> Mapping[str, float]:
        self.calls += 1
        return {"a": 0.5}


async def test_centralities_are_memoized_for_a_while(clock: Clock) -> None:
    graph = CountingGraph()
    memoized = MemoizedCentralities(graph, Memo(10.0, clock, 10), lambda scope: (scope.tenant,))
    for scope, ids, seconds, calls in (
        (SCOPE, ["a"], 0, 1),
        (SCOPE, ["a"], 9, 1),
        (SCOPE, ["b"], 0, 2),
        (SCOPE, ["a"], 2, 3),
    ):
        clock.now += seconds
        assert await memoized.centralities(scope, ids) == {"a": 0.5}
        assert graph.calls == calls
    await memoized.centralities(Scope("other"), ["a"])
    assert graph.calls == 4


class BrokenSource:
    """A source with a defect."""

    async def search(self, query: SourceQuery) -> Ranking:
        raise ZeroDivisionError


async def test_an_error_is_not_memoized(index: EmbeddedIndex) -> None:
    service = search_service(index, graph=BrokenSource())
    response = await service.search(request_of("alpha", mode="hybrid"), PRINCIPAL, "r")
    assert [each.source for each in response.degraded] == ["graph"]
    memo: Memo[Ranking] = Memo(60.0, lambda: 0.0)
    with pytest.raises(ZeroDivisionError):
        await MemoizedRetriever(BrokenSource(), memo, lambda _: ()).search(QUERY)
    assert len(memo) == 0


def _recorded(version: tuple[str | int, ...] = ("v", 1)) -> tuple[MemoizedRetriever, RecordingSource]:
    source = RecordingSource(FixedSource("keyword", "a"))
    return MemoizedRetriever(source, Memo(60.0, lambda: 0.0), lambda _: version), source


@pytest.mark.parametrize(
    "changed",
    [
        {"text": "beta"},
        {"depth": 11},
        {"scope": Scope("other")},
        {"access": normal(access(SCOPE, Viewer("restricted")))},
        {"filter": normal(Eq("language", "en"))},
        {"vector": unit(1)},
        {"seeds": Documents.of_ids(["a"])},
        {"hops": 1},
        {"expansions": ("first",)},
    ],
    ids=lambda changed: next(iter(changed)),
)
async def test_each_field_of_a_query_has_its_own_entry(changed: dict[str, object]) -> None:
    memoized, source = _recorded()
    await memoized.search(QUERY)
    await memoized.search(replace(QUERY, **changed))  # type: ignore[arg-type]
    assert len(source.queries) == 2
    await memoized.search(replace(QUERY, **changed))  # type: ignore[arg-type]
    assert len(source.queries) == 2


def test_the_test_above_covers_every_field() -> None:
    covered = {"text", "depth", "scope", "access", "filter", "vector", "seeds", "hops", "expansions"}
    assert set(SourceQuery.__struct_fields__) == covered | {"snapshot"}


async def test_a_pinned_snapshot_has_entries_of_its_own_data_version(index: EmbeddedIndex) -> None:
    """The newest version counts for a query without a snapshot only."""
    memoized, source = _recorded(version=("new", 2))
    old = Snapshot(SCOPE, 1, ("old", 1), index)
    new = Snapshot(SCOPE, 2, ("new", 2), index)
    for query, searches in (
        (replace(QUERY, snapshot=old), 1),
        (replace(QUERY, snapshot=old), 1),
        (replace(QUERY, snapshot=new), 2),
        (QUERY, 2),
        (replace(QUERY, snapshot=old), 2),
    ):
        await memoized.search(query)
        assert len(source.queries) == searches


@pytest.mark.parametrize(
    ("modes", "searches", "entries"),
    [
        (["use", "use"], 1, 1),
        (["bypass", "use"], 2, 1),
        (["bypass", "bypass"], 2, 0),
        (["use", "bypass"], 2, 1),
        (["use", "refresh", "use"], 2, 1),
    ],
)
async def test_refresh_replaces_an_entry_and_bypass_neither_reads_nor_writes(
    modes: list[str], searches: int, entries: int
) -> None:
    memoized, source = _recorded()
    for mode in modes:
        await memoized.search(QUERY, mode)  # type: ignore[arg-type]
    assert (len(source.queries), len(memoized.memo)) == (searches, entries)


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 5))
def test_a_memo_is_bounded_and_returns_what_was_put(keys: list[int], max_entries: int) -> None:
    memo: Memo[int] = Memo(60.0, lambda: 0.0, max_entries)
    for key in keys:
        value = memo.get(key)
        assert value in (None, key * key)
        memo.put(key, key * key)
        assert memo.get(key) == key * key
        assert len(memo) <= max_entries
    assert memo.hits + memo.misses == 2 * len(keys)


def test_a_memo_drops_the_values_of_an_earlier_commit() -> None:
    commit = 1
    memo: Memo[str] = Memo(60.0, lambda: 0.0, commit=lambda: commit)
    memo.put("a", "old")
    assert memo.get("a") == "old"
    commit = 2
    assert memo.get("a") is None
    assert len(memo) == 0
    memo.put("a", "new")
    commit = 3
    memo.put("b", "newest")
    assert (len(memo), memo.get("b")) == (1, "newest")


async def test_an_empty_ranking_is_memoized_too() -> None:
    source = RecordingSource(FixedSource("keyword"))
    memoized = MemoizedRetriever(source, Memo(60.0, lambda: 0.0), lambda _: ())
    for _ in range(2):
        assert len(await memoized.search(QUERY)) == 0
    assert len(source.queries) == 1


async def test_vectors_that_differ_in_one_number_have_their_own_entries() -> None:
    memoized, source = _recorded()
    vector = np.zeros(16, np.float32)
    other = vector.copy()
    other[15] = np.float32(1e-30)
    for each in (vector, other, vector):
        await memoized.search(replace(QUERY, vector=each))
    assert len(source.queries) == 2
