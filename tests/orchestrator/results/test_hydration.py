"""From ranked rows to hits with text, and the access check of what the sources returned."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from adapters import Document, Record, Scope, Unavailable
from adapters.keyword.snippets import snippet
from adapters.ports import Snapshot
from fusion.columns import Candidates, Documents, Ranking
from fusion.sums import Fused
from fusion.values import Contribution
from orchestrator.auth.principal import Principal
from orchestrator.execution.budget import Deadline
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import AllSourcesFailed, FusedCandidates, Page, Ranked
from orchestrator.results.hydration import hydrate
from orchestrator.telemetry.spans import StageTimings
from tests import virtual_clock
from tests.orchestrator.services import plan_of

pytestmark = pytest.mark.anyio
SCOPE = Scope("t", "e")
PRINCIPAL = Principal("test", SCOPE, "normal")


class GivenDocuments:
    """A reader of some records, and the ids that it was called with."""

    def __init__(self, *records: Record) -> None:
        self._records = {record.document.id: record for record in records}
        self.fetched: list[list[str]] = []

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[str, Record]:
        assert scope == SCOPE
        self.fetched.append(list(documents.ids))
        return {id_: self._records[id_] for id_ in documents.ids if id_ in self._records}


def record_of(id_: str, tenant: str = "t", **fields: object) -> Record:
    return Record(tenant, "e", Document(id=id_, text=f"text {id_}", **fields))  # type: ignore[arg-type]


def ranked_of(*ids: str) -> Ranked:
    """Found by ``keyword`` alone, with a fusion score of 0.5 each, and a factor of 1.1."""
    rankings = [Ranking.of_ids("keyword", ids, [2.5] * len(ids)), Ranking.empty("vector")]
    candidates = Candidates.of(rankings)
    rows, ones = np.arange(len(ids)), np.ones(len(ids))
    contributions = {"keyword": ones / 61, "vector": np.zeros(len(ids))}
    fused = Fused(rows, ones / 61, ones * 0.5, contributions, {"keyword": 1.0, "vector": 1.0})
    factors = {"centrality": ones * 1.1, "recency": None}
    fused_candidates = FusedCandidates(candidates, fused, np.zeros(0, np.int64), "rrf(k=60)", "")
    return Ranked(rows, ones * 0.5 * 1.1, fused_candidates, factors, {})


async def hydrated(
    ranked: Ranked,
    documents: object,
    deadline: Deadline | None = None,
    principal: Principal = PRINCIPAL,
    copies: Sequence[object] = (),
    **fields: object,
) -> Page:
    context = SearchContext(deadline or Deadline.after(5.0), StageTimings())
    snapshot = Snapshot(SCOPE, 1, ("v",), documents, copies=copies)  # type: ignore[arg-type]
    plan = plan_of(principal=principal, **fields)  # type: ignore[arg-type]
    return await hydrate(plan, ranked, snapshot, context, "model-1", snippet)


async def test_hits_have_their_document_and_their_provenance() -> None:
    documents = GivenDocuments(record_of("a", parent_id="p", chunk_index=3, url="u"))
    page = await hydrated(ranked_of("a"), documents, neighbors=2)
    (hit,) = page.hits
    assert (hit.id, hit.text, hit.score, hit.fusion_score) == ("a", "text a", 0.5 * 1.1, 0.5)
    assert hit.boosts == {"centrality": 1.1, "recency": 1.0}
    assert hit.sources == {"keyword": Contribution(1, 2.5, 1.0, 1 / 61), "vector": None, "graph": None}
    assert (hit.method, hit.found_in) == ("keyword", ("keyword/documents",))
    assert (hit.url, hit.parent_id, hit.chunk_index, hit.window_id, hit.span) == ("u", "p", 3, "p:1-5", (0, 6))
    assert (page.sensitivities, page.deleted, page.withheld) == (("normal",), 0, 0)


async def test_a_hit_can_be_cited() -> None:
    metadata = {"heading_path": ["Cells", 3, "Nucleus"], "chunker_version": "2.1"}
    documents = GivenDocuments(record_of("a", parent_id="p", parent_start=100, metadata=metadata))
    (hit,) = (await hydrated(ranked_of("a"), documents)).hits
    assert (hit.heading_path, hit.chunker_version, hit.embedding_model) == (("Cells", "Nucleus"), "2.1", "model-1")
    assert hit.source_span == (100, 106)


async def test_what_a_document_does_not_say_is_null() -> None:
    documents = GivenDocuments(record_of("a", metadata={"heading_path": None, "chunker_version": 2}))
    (hit,) = (await hydrated(ranked_of("a"), documents)).hits
    assert (hit.heading_path, hit.chunker_version, hit.source_span, hit.neighbor_ids) == ((), None, None, ())


async def test_a_document_that_a_source_should_not_have_returned_is_withheld(caplog: pytest.LogCaptureFixture) -> None:
    documents = GivenDocuments(
        record_of("visible"), record_of("foreign", tenant="other"), record_of("secret", sensitivity="restricted")
    )
    with caplog.at_level(logging.ERROR):
        page = await hydrated(ranked_of("foreign", "visible", "secret"), documents)
    assert [hit.id for hit in page.hits] == ["visible"]
    assert (page.withheld, page.deleted) == (2, 0)
    assert "excludes" in caplog.text
    assert "text" not in caplog.text.replace("the request's filter", "")


async def test_a_document_that_was_deleted_meanwhile_is_left_out() -> None:
    page = await hydrated(ranked_of("gone"), GivenDocuments())
    assert (page.hits, page.deleted, page.withheld) == ((), 1, 0)


async def test_a_page_is_filled_up_with_the_next_candidates() -> None:
    documents = GivenDocuments(*(record_of(id_) for id_ in "bdef"))
    page = await hydrated(ranked_of(*"abcdef"), documents, limit=3)
    assert [hit.id for hit in page.hits] == ["b", "d", "e"]
    assert documents.fetched == [["a", "b", "c"], ["d", "e"]]
    assert (page.end, page.total, page.deleted) == (5, 6, 2)


async def test_a_page_is_filled_up_a_limited_number_of_times() -> None:
    """A source that returns only documents that are withheld: four reads, then the page stays short."""
    ids = [f"d{number}" for number in range(50)]
    documents = GivenDocuments(*(record_of(id_, sensitivity="restricted") for id_ in ids))
    page = await hydrated(ranked_of(*ids), documents, limit=2)
    assert (page.hits, page.withheld, page.end) == ((), 8, 8)
    assert len(documents.fetched) == 4


class FailingDocuments:
    """A store that cannot be read."""

    def __init__(self, reason: str = "disk on fire") -> None:
        self._reason = reason

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[str, Record]:
        raise Unavailable(self._reason)


class StalledDocuments:
    """A store that never responds."""

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[str, Record]:
        await asyncio.Event().wait()
        raise AssertionError


async def test_documents_that_cannot_be_read_fail_the_request() -> None:
    with pytest.raises(AllSourcesFailed) as raised:
        await hydrated(ranked_of("a"), FailingDocuments(), copies=[FailingDocuments("no disk")])
    assert [(each.source, each.reason) for each in raised.value.failures] == [("documents", "disk on fire; no disk")]


async def test_documents_are_read_from_the_next_store_if_one_is_unavailable() -> None:
    copy = GivenDocuments(record_of("a"), record_of("secret", sensitivity="restricted"))
    page = await hydrated(ranked_of("secret", "a"), FailingDocuments(), copies=[FailingDocuments(), copy])
    assert [hit.text for hit in page.hits] == ["text a"]
    assert page.withheld == 1  # whatever store it is from


async def test_another_store_is_not_read_while_the_first_responds() -> None:
    copy = GivenDocuments(record_of("a"))
    await hydrated(ranked_of("a", "deleted"), GivenDocuments(record_of("a")), copies=[copy])
    assert copy.fetched == []


def test_a_store_that_does_not_respond_leaves_time_for_the_next_one() -> None:
    async def play() -> None:
        loop = asyncio.get_running_loop()
        deadline = Deadline.after(0.1, loop.time)
        page = await hydrated(ranked_of("a"), StalledDocuments(), deadline, copies=[GivenDocuments(record_of("a"))])
        assert [hit.id for hit in page.hits] == ["a"]
        assert loop.time() == pytest.approx(0.05)

    virtual_clock.run(play())


def test_of_two_slow_stores_the_first_response_counts() -> None:
    class SlowDocuments(GivenDocuments):
        async def fetch(self, scope: Scope, documents: Documents) -> Mapping[str, Record]:
            await asyncio.sleep(0.08)
            return await super().fetch(scope, documents)

    async def play() -> None:
        loop = asyncio.get_running_loop()
        documents, deadline = SlowDocuments(record_of("a")), Deadline.after(0.1, loop.time)
        page = await hydrated(ranked_of("a"), documents, deadline, copies=[StalledDocuments()])
        assert [hit.id for hit in page.hits] == ["a"]
        assert loop.time() == pytest.approx(0.08)
        with pytest.raises(AllSourcesFailed, match="documents: timed out; timed out"):
            await hydrated(
                ranked_of("a"), StalledDocuments(), Deadline.after(0.1, loop.time), copies=[StalledDocuments()]
            )
        assert loop.time() == pytest.approx(0.18)

    virtual_clock.run(play())


def test_documents_that_take_longer_than_the_request_may_fail_it() -> None:
    async def play() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(AllSourcesFailed, match="documents: timed out"):
            await hydrated(ranked_of("a"), StalledDocuments(), Deadline.after(0.1, loop.time))
        assert loop.time() == pytest.approx(0.1)

    virtual_clock.run(play())
