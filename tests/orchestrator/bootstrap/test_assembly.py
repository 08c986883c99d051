"""Every decorator of an opened service, by its effect: each test fails if the decorator is left out.

The keyword source is on a server in memory; everything else is the real embedded engine.
"""

from __future__ import annotations

import gc
import logging
import weakref
from pathlib import Path

import anyio
import pytest
from threadpoolctl import threadpool_info

from adapters import Unavailable, VersionMismatch
from adapters.engine.segment_set import SegmentSet
from adapters.ports import SourceQuery
from fusion.columns import Ranking
from orchestrator.bootstrap import open_service
from orchestrator.bootstrap.assembly import open_generation
from orchestrator.measurement.graph_trust import TRUST_FILE, GraphTrust, ScopeTrust, TrustMeasurements
from orchestrator.retrieval.circuit_breakers import MAX_FAILURES
from orchestrator.settings import Settings
from tests.conftest import SCOPE
from tests.orchestrator.bootstrap.fake_server import FakeServer, OpenService
from tests.orchestrator.bootstrap.helpers import ALPHA, BETA, index, respond, search

pytestmark = pytest.mark.anyio


async def test_rankings_are_memoized_until_the_next_write(opened: OpenService, server: FakeServer) -> None:
    async with opened() as service:
        await index(service, [ALPHA, BETA])
        for limit in (1, 2, 3):  # three different responses with the same rankings
            await search(service, "alpha", mode="keyword", limit=limit)
        assert len(server.queries) == 1
        await index(service, [ALPHA])
        await search(service, "alpha", mode="keyword")
        assert len(server.queries) == 2


async def test_a_memo_expires_with_the_cache(opened: OpenService, server: FakeServer) -> None:
    async with opened(cache_ttl_s=0) as service:
        await index(service, [ALPHA, BETA])
        for _ in range(2):
            await search(service, "alpha", mode="keyword")
        assert len(server.queries) == 2


async def test_no_memo_keeps_the_documents_of_an_earlier_commit_in_memory(chosen: Settings) -> None:
    """Each ranking refers to its whole commit, so a thousand rankings would keep as many commits as there are."""
    of_other_tests = _segment_sets()
    async with open_service(chosen) as service:
        replaced: list[weakref.ref[SegmentSet]] = []
        for number in range(3):
            await index(service, [ALPHA, BETA])
            response = await search(service, f"alpha {number}", mode="hybrid")
            assert response.hits
            known = [*of_other_tests, *(old() for old in replaced)]
            replaced += [weakref.ref(each) for each in _segment_sets() if each not in known]
            del known
        gc.collect()
        assert len(replaced) >= 3
        assert len([each for each in replaced if each()]) == 1


def _segment_sets() -> list[SegmentSet]:
    return [each for each in gc.get_objects() if isinstance(each, SegmentSet) and len(each)]


async def test_an_index_of_another_extractor_is_searched_and_reported(chosen: Settings) -> None:
    async with open_service(chosen) as service:
        await index(service, [ALPHA, BETA])
        assert not (await search(service, "alpha", mode="hybrid")).degraded
    async with open_generation(chosen.changed(entity_extractor="none://")) as service:
        response = await search(service, "alpha", mode="hybrid")
        assert response.hits
        (reported,) = response.degraded
        assert reported.source == "index"
        assert "rules://2" in reported.reason
        assert "none://" in reported.reason


async def test_blas_uses_one_thread_while_a_service_is_open(chosen: Settings) -> None:
    """Its idle threads spin after each call: queries are parallel already."""
    before = blas_threads()
    async with open_service(chosen) as service:
        await index(service, [ALPHA, BETA])
        await search(service, "alpha", mode="hybrid")
        assert blas_threads() == [1] * len(before)
    assert blas_threads() == before


def blas_threads() -> list[int]:
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


async def test_centralities_are_memoized(chosen: Settings) -> None:
    async with open_service(chosen) as service:
        await index(service, [ALPHA, BETA])
        await service.maintenance.optimize(lambda _: None)
        for _ in range(3):
            await search(service, "alpha", boosts={"centrality": True})
        level = service.cache_report().levels["centralities"]
        assert (level.misses, level.hits) == (1, 2)


async def test_the_circuit_of_a_source_that_keeps_failing_opens_and_closes_again(
    opened: OpenService, server: FakeServer
) -> None:
    async with opened(circuit_reset_ms=600_000) as service:
        await index(service, [ALPHA, BETA])
        server.failures = [Unavailable("away")] * MAX_FAILURES
        for number in range(MAX_FAILURES + 3):
            response = await search(service, f"alpha {number}", mode="hybrid")
            reason = "away" if number < MAX_FAILURES else "circuit open after repeated failures, tried again soon"
            assert [(each.source, each.reason) for each in response.degraded] == [("keyword", reason)]
            assert {hit.id for hit in response.hits} == {"a", "b"}
        assert len(server.queries) == MAX_FAILURES
    async with opened(circuit_reset_ms=1) as service:
        server.failures = [Unavailable("away")] * MAX_FAILURES
        for number in range(MAX_FAILURES):
            await search(service, f"beta {number}", mode="hybrid")
        await anyio.sleep(0.002)
        assert (await search(service, "beta", mode="hybrid")).degraded == ()


async def test_a_failed_search_of_a_server_is_retried_within_the_budget(
    opened: OpenService, server: FakeServer
) -> None:
    async with opened(retry_budget_ratio=0.5) as service:
        await index(service, [ALPHA, BETA])
        server.failures = [Unavailable("connection lost")]
        assert (await search(service, "alpha", mode="hybrid")).degraded == ()
        assert len(server.queries) == 2
    async with opened(retry_budget_ratio=0.0) as service:
        server.failures = [Unavailable("connection lost")]
        response = await search(service, "beta", mode="hybrid")
        assert [each.reason for each in response.degraded] == ["connection lost"]


async def test_an_index_of_another_build_is_searched_and_reported(opened: OpenService, server: FakeServer) -> None:
    server.mismatch = VersionMismatch("built as 'old'")
    async with opened() as service:
        await index(service, [ALPHA, BETA])
        assert server.created == 0  # it is left as it is
        response = await search(service, "alpha", mode="keyword")
        assert [(each.source, each.reason) for each in response.degraded] == [("keyword", "built as 'old'")]
        assert {hit.id for hit in response.hits} == {"a", "b"}
        assert len(server.queries) == 1


async def test_an_index_of_another_build_is_refused_if_the_settings_are_strict(
    opened: OpenService, server: FakeServer
) -> None:
    server.mismatch = VersionMismatch("built as 'old'")
    with pytest.raises(VersionMismatch, match="built as 'old'"):
        async with opened(strict_index=True):
            pass
    # A server that was away at the start is checked before its first search.
    async with opened(prepare=False, strict_index=True) as service:
        await index(service, [ALPHA, BETA])
        response = await search(service, "alpha", mode="hybrid")
        assert ("keyword", "built as 'old'") in {(each.source, each.reason) for each in response.degraded}
        assert server.queries == []


async def test_the_build_is_checked_once_and_the_index_created_at_the_start(
    opened: OpenService, server: FakeServer
) -> None:
    async with opened() as service:
        assert (server.checks, server.created) == (1, 1)
        for number in range(3):
            await index(service, [ALPHA, BETA])
            await search(service, f"alpha {number}", mode="keyword")
        assert (server.checks, server.created) == (1, 1)
    async with opened(prepare=False) as service:
        assert (server.checks, server.created) == (1, 1)
        await search(service, "alpha", mode="keyword")
        assert (server.checks, server.created) == (2, 1)


async def test_a_server_that_is_away_does_not_stop_the_start(
    opened: OpenService, server: FakeServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> bool:
        raise Unavailable("connection refused")

    monkeypatch.setattr(server, "check", away)
    with caplog.at_level(logging.WARNING):
        async with opened() as service:
            await index(service, [ALPHA])
            assert [hit.id for hit in (await search(service, "alpha", mode="hybrid")).hits] == ["a"]
    assert "the keyword source is unavailable: connection refused" in caplog.messages


async def test_responses_are_cached_and_a_write_invalidates_them(chosen: Settings) -> None:
    async with open_service(chosen) as service:
        await index(service, [ALPHA])
        assert [(await respond(service, "star")).cache for _ in range(2)] == ["miss", "l1"]
        await index(service, [BETA])
        response = await respond(service, "star")
        assert (response.cache, {hit.id for hit in response.hits}) == ("miss", {"a", "b"})


async def test_the_number_of_concurrent_searches_is_limited(opened: OpenService, server: FakeServer) -> None:
    running, max_running = 0, 0
    inner = server.search

    async def slow(query: SourceQuery) -> Ranking:
        nonlocal running, max_running
        running += 1
        max_running = max(max_running, running)
        await anyio.wait_all_tasks_blocked()
        ranking = await inner(query)
        running -= 1
        return ranking

    server.search = slow  # type: ignore[method-assign]
    for limit in (1, 3):
        max_running = 0
        async with opened(search_concurrency=limit) as service, anyio.create_task_group() as group:
            await index(service, [ALPHA, BETA])
            for number in range(6):
                group.start_soon(respond, service, f"alpha {number}")
        assert max_running == limit


async def test_a_synonym_of_the_query_is_searched(chosen: Settings, tmp_path: Path) -> None:
    (tmp_path / "synonyms.txt").write_text("sun, star\n")
    for expansion, ids in (("none://", []), (f"synonyms://{tmp_path / 'synonyms.txt'}", ["a"])):
        async with open_service(chosen.changed(query_expansion=expansion)) as service:
            await index(service, [ALPHA])
            assert [hit.id for hit in (await search(service, "sun", mode="keyword")).hits] == ids


async def test_the_trust_of_the_graph_is_a_factor_on_its_weight(chosen: Settings) -> None:
    """The square root of 8 is halfway between the fifth and the two fifths of 32."""
    async with open_service(chosen) as service:
        await index(service, [ALPHA, BETA])
        weights = []
        for lift in (4.0, 8**0.5):
            GraphTrust(chosen.storage.data_dir / TRUST_FILE).save(
                TrustMeasurements(1, [ScopeTrust(SCOPE.tenant, SCOPE.environment, "normal", lift, 50, 32.0)])
            )
            service.maintenance.refresh()
            response = await search(service, "Alpha Centauri", mode="hybrid")
            contribution = response.hits[0].sources["graph"]
            assert contribution
            weights.append(contribution.weight)
        assert weights == pytest.approx([1.0, 0.5])
