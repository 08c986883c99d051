"""A write that is committed while a request runs does not mix into its response: all stages read one snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from adapters import Link, Scope
from adapters.engine import EmbeddedIndex, IndexView
from adapters.graph.centrality import CentralityFile
from adapters.graph.component import GraphComponent
from adapters.graph.embedded import EmbeddedGraph
from adapters.keyword.component import KeywordComponent
from adapters.keyword.embedded import EmbeddedKeyword
from adapters.model.protection import HIGHEST_CLEARANCE, Sensitivity
from adapters.ports import (
    CentralityReader,
    EntityLookup,
    Key,
    RerankResult,
    Retriever,
    Snapshot,
    SourceQuery,
    VectorRecord,
)
from adapters.vector.embedded import EmbeddedVector, VectorComponent
from fusion.columns import Ranking
from orchestrator.indexing.data_version import DataVersion, DataVersions
from orchestrator.indexing.snapshots import IndexSnapshots
from orchestrator.schema.search import SearchResponse
from orchestrator.service.admission import Admission
from orchestrator.service.search import SearchService
from tests.conftest import SCOPE, vector_record
from tests.orchestrator.services import PRINCIPAL, SETTINGS, empty_index, request_of, search, search_service

pytestmark = pytest.mark.anyio

Hook = Callable[[], Awaitable[None]]


def chunk(number: int, text: str, **fields: object) -> VectorRecord:
    return vector_record(f"c{number}", text, seed=number + 10, parent_id="p", chunk_index=number, **fields)


@pytest.fixture
async def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path / "index")
    await index.write(
        [
            vector_record("a", "Alpha Centauri, Alpha Centauri", seed=1, title="A", links=(Link("b", "cites"),)),
            vector_record("b", "Proxima is near Alpha Centauri", seed=2, links=(Link("c1", "cites"),)),
            chunk(0, "Before it."),
            chunk(1, "Alpha Centauri in a chunk."),
            chunk(2, "After it."),
        ],
        (),
    )
    return index


WRITES: dict[str, tuple[Sequence[VectorRecord], Sequence[Key]]] = {
    "a better document": ([vector_record("z", "Alpha Centauri Alpha Centauri", seed=1, importance=10)], ()),
    "the best hit is deleted": ((), [(SCOPE.tenant, SCOPE.environment, "a")]),
    "the best hit is replaced": ([vector_record("a", "Nothing of the kind", seed=9, title="B")], ()),
    "a hit becomes secret": ([vector_record("b", "Alpha Centauri", seed=2, sensitivity="restricted")], ()),
    "a neighbour is replaced": ([chunk(0, "Another text."), vector_record("c2", "No chunk any more")], ()),
}

MOMENTS = ("stage 1", "entity lookup", "stage 2", "boosts", "rerank")


class Hooked:
    """A source, an entity lookup, a reader of centralities, or a reranker, with a hook before it runs."""

    def __init__(self, inner: object, hook: Hook) -> None:
        self._inner, self._hook = inner, hook

    async def search(self, query: SourceQuery) -> Ranking:
        await self._hook()
        inner: Retriever = self._inner  # type: ignore[assignment]
        return await inner.search(query)

    async def mentions_entity(self, query: SourceQuery) -> bool:
        await self._hook()
        inner: EntityLookup = self._inner  # type: ignore[assignment]
        return await inner.mentions_entity(query)

    async def centralities(
        self,
        scope: Scope,
        ids: Sequence[str],
        snapshot: Snapshot | None = None,
        clearance: Sensitivity = HIGHEST_CLEARANCE,
    ) -> Mapping[str, float]:
        await self._hook()
        inner: CentralityReader = self._inner  # type: ignore[assignment]
        return await inner.centralities(scope, ids, snapshot, clearance)

    async def rerank(self, query: str, passages: Sequence[str]) -> RerankResult:
        await self._hook()
        return RerankResult(tuple(range(len(passages))))


async def _nothing() -> None:
    pass


def hooked_service(
    index: EmbeddedIndex, centrality: CentralityFile, memo_ttl_s: float = 0.0, **hooks: Hook
) -> SearchService:
    """A service over an index, with a hook at some of the :data:`MOMENTS`."""

    def hooked(moment: str, inner: object) -> Hooked:
        return Hooked(inner, hooks.get(moment.replace(" ", "_"), _nothing))

    graph = EmbeddedGraph(index, GraphComponent(), centrality)
    return search_service(
        index,
        settings=SETTINGS.changed(rerank_top=10, source_timeout_ms=60_000),
        vector=hooked("stage 1", EmbeddedVector(index, VectorComponent())),
        graph=hooked("stage 2", graph),
        keyword=EmbeddedKeyword(index, KeywordComponent()),
        entities=hooked("entity lookup", graph),
        centralities=hooked("boosts", graph),
        reranker=hooked("rerank", None),
        rerank_timeout_s=60.0,
        memo_ttl_s=memo_ttl_s,
    )


@pytest.fixture
def centrality(index: EmbeddedIndex, tmp_path: Path) -> CentralityFile:
    file = CentralityFile(tmp_path / "centrality.msgpack", "pagerank")
    view = index.current()
    file.compute(view.component(GraphComponent()), view.segments, view.manifest.generation)
    return file


async def search_all_stages(service: SearchService) -> SearchResponse:
    """A request that every stage reads the index for."""
    boosts = {"centrality": True, "relationship": True}
    return await search(
        service,
        mode="auto",
        boosts=boosts,
        collapse="none",
        rerank=True,
        neighbors=1,
        explain=True,
        limit=20,
        timeout_ms=60_000,
    )


def content(response: SearchResponse) -> bytes:
    """Everything that depends on the documents."""
    return msgspec.json.encode(
        (response.hits, response.explain, response.degraded, response.generation, response.route)
    )


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("write", WRITES)
async def test_a_write_between_two_stages_does_not_change_the_response(
    index: EmbeddedIndex, centrality: CentralityFile, moment: str, write: str
) -> None:
    before = await search_all_stages(hooked_service(index, centrality))
    assert {hit.id for hit in before.hits} == {"a", "b", "c0", "c1", "c2"}
    assert {hit.boosts["centrality"] for hit in before.hits} != {1.0}
    assert before.degraded == ()

    async def commit() -> None:
        if index.generation() == 1:
            await index.write(*WRITES[write])

    during = await search_all_stages(hooked_service(index, centrality, **{moment.replace(" ", "_"): commit}))
    assert index.generation() == 2
    assert content(during) == content(before)
    after = await search_all_stages(hooked_service(index, centrality))
    assert after.generation == 2
    assert after.hits != before.hits


async def test_a_request_that_began_before_a_write_and_one_after_it_share_no_memoized_part(
    index: EmbeddedIndex, centrality: CentralityFile
) -> None:
    """The older request waits before stage 2 until the newer one is complete and has filled every memo."""
    before = await search_all_stages(hooked_service(index, centrality))
    arrived, gate = asyncio.Event(), asyncio.Event()

    async def wait_once() -> None:
        if not arrived.is_set():
            arrived.set()
            await gate.wait()

    service = hooked_service(index, centrality, memo_ttl_s=60.0, entity_lookup=wait_once)
    older = asyncio.create_task(search_all_stages(service))
    await arrived.wait()
    await index.write(*WRITES["the best hit is replaced"])
    newer = await search_all_stages(service)
    gate.set()
    assert content(await older) == content(before)
    assert newer.generation == 2
    assert content(newer) == content(await search_all_stages(hooked_service(index, centrality)))


async def test_a_request_that_waits_for_its_slot_is_of_the_state_at_its_arrival(
    index: EmbeddedIndex, centrality: CentralityFile
) -> None:
    """Its response is cached under that state's key, so that a request after the write does not find it."""
    arrived, gate = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        arrived.set()
        await gate.wait()

    service = hooked_service(index, centrality, stage_1=wait)
    service.admission = Admission(1, 10)

    async def respond(query: str) -> SearchResponse:
        response = await service.respond(request_of(query, mode="hybrid", explain=True), PRINCIPAL, "r")
        return msgspec.json.decode(response.content, type=SearchResponse)

    running = asyncio.create_task(respond("Proxima"))
    await arrived.wait()
    waiting = asyncio.create_task(respond("Alpha Centauri"))
    while not service.admission.waiting:  # noqa: ASYNC110
        await asyncio.sleep(0)
    await index.write(*WRITES["the best hit is deleted"])
    gate.set()
    await running
    old, new = await waiting, await respond("Alpha Centauri")
    assert (old.generation, new.generation, new.cache) == (1, 2, "miss")
    assert "a" in {hit.id for hit in old.hits}
    assert "a" not in {hit.id for hit in new.hits}
    assert (await respond("Alpha Centauri")).cache == "l1"


@pytest.mark.parametrize("commits_before_the_read", [True, False])
async def test_a_commit_while_a_snapshot_is_pinned_leaves_version_and_documents_of_one_state(
    index: EmbeddedIndex, commits_before_the_read: bool
) -> None:
    """Writes run in another thread, so one may be committed between any two reads."""

    class CommittingVersions(DataVersions):
        reads = 0

        def _commit(self) -> None:
            self.reads += 1
            if self.reads == 1:
                index.write_blocking([vector_record("z", "Alpha Centauri")])

        def current(self, scope: Scope) -> DataVersion:
            if commits_before_the_read:
                self._commit()
                return super().current(scope)
            version = super().current(scope)
            self._commit()
            return version

    versions = CommittingVersions([index], "installation", None)
    snapshot = IndexSnapshots(versions, index.generation, index.current, None, has_servers=False).pin(SCOPE)
    assert isinstance(snapshot.view, IndexView)
    assert snapshot.view is snapshot.documents is index.current()
    assert (snapshot.generation, snapshot.data_version) == (2, ("installation", 2))
    assert snapshot.view.manifest.generation == 2
    assert versions.reads == 2


class ServerSource:
    """A source on a server: it has the newest state only, and a version that grows with each write."""

    def __init__(self) -> None:
        self.version = 1

    def data_version(self) -> int:
        return self.version


async def test_a_write_that_servers_may_show_during_a_search_is_reported(index: EmbeddedIndex) -> None:
    server = ServerSource()
    versions = DataVersions([server], "", None)

    class WritingSource:
        async def search(self, query: SourceQuery) -> Ranking:
            server.version += 1
            return Ranking.of_ids("vector", ["a"], [1.0])

    service = search_service(index, vector=WritingSource())
    service.data_versions = versions
    service.snapshots = IndexSnapshots(versions, lambda: server.version, lambda: None, index, has_servers=True)
    response = await search(service, mode="vector")
    assert [hit.id for hit in response.hits] == ["a"]
    assert [each.source for each in response.degraded] == ["snapshot"]
    assert response.degraded[0].reason == (
        "documents were written during this search: some sources may not have them yet"
    )


async def test_a_write_to_a_server_before_a_waiting_search_begins_is_not_reported(index: EmbeddedIndex) -> None:
    """Nothing was read before the write, so every source shows it."""
    server = ServerSource()
    versions = DataVersions([server], "", None)
    service = search_service(index)
    service.data_versions = versions
    service.snapshots = IndexSnapshots(versions, lambda: server.version, lambda: None, index, has_servers=True)
    service.admission = Admission(1, 10)
    async with service.admission.slot("other", 60):
        waiting = asyncio.create_task(service.respond(request_of(), PRINCIPAL, "r"))
        while not service.admission.waiting:  # noqa: ASYNC110
            await asyncio.sleep(0)
        server.version += 1
    computed = (await waiting).computed
    assert computed
    assert (computed.generation, computed.degraded) == (2, ())
