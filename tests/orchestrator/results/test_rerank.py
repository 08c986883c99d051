"""Reranking with a real HTTP stub: whatever the reranker does, the request succeeds in time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

import pytest
from msgspec import UNSET

from adapters.engine import EmbeddedIndex
from adapters.ports import RerankResult
from adapters.rerank import reranker
from orchestrator.auth.principal import Principal
from orchestrator.schema.hits import RerankedHit
from orchestrator.schema.search import SearchResponse
from orchestrator.settings import Settings
from tests.adapters.rerank.test_http import MISBEHAVIOURS, RecordingServer, chat_completion
from tests.conftest import SCOPE, vector_record
from tests.orchestrator.services import RERANK_TIMEOUT_S, SETTINGS, empty_index, request_of, search, search_service
from tests.servers.stub import Serve, http, stub

pytestmark = pytest.mark.anyio


@pytest.fixture
async def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path)
    texts = ["Alpha Centauri " * (5 - n) + "star " * n for n in range(5)]
    await index.write([vector_record(f"d{n}", text, seed=1, title=f"T{n}") for n, text in enumerate(texts)], ())
    return index


@asynccontextmanager
async def reranked(
    index: EmbeddedIndex, serve: Serve, limit: int = 5, settings: Settings = SETTINGS, **fields: object
) -> AsyncIterator[SearchResponse]:
    async with stub(serve) as port:
        opened, close = reranker(f"chat+http://127.0.0.1:{port}/v1", "m", "", RERANK_TIMEOUT_S)
        assert close
        try:
            service = search_service(index, reranker=opened, settings=settings)
            yield await search(service, "Alpha Centauri", mode="keyword", limit=limit, rerank=True, **fields)
        finally:
            await close()


async def test_the_stage_says_what_became_of_it(index: EmbeddedIndex) -> None:
    """Also where no hit that the reranker got is left on the page."""
    await index.write([vector_record("hidden", "Alpha Centauri", sensitivity="sensitive", title="Alpha Centauri")], ())
    principal = Principal("test", SCOPE, "restricted")
    async with stub(RecordingServer(chat_completion("[2, 1]"))) as port:
        opened, close = reranker(f"chat+http://127.0.0.1:{port}/v1", "m", "", RERANK_TIMEOUT_S)
        assert close
        service = search_service(index, reranker=opened)
        request = request_of("Alpha Centauri", mode="keyword", limit=1, rerank=True)
        found = await service.respond(request, principal, "test")
        await close()
    assert found.computed
    assert found.timings
    assert [(hit.id, hit.rerank) for hit in found.computed.hits] == [("hidden", UNSET)]
    assert (found.timings.log_fields["rerank"], found.timings.log_fields["rerank_reason"]) == ("used", "")


@pytest.fixture
async def fused(index: EmbeddedIndex) -> list[str]:
    return [hit.id for hit in (await search(search_service(index), "Alpha Centauri", mode="keyword")).hits]


async def test_the_best_hits_are_in_the_order_of_the_reranker(index: EmbeddedIndex, fused: list[str]) -> None:
    """Three of five are sent (``rerank_top``): the third comes first, what was not sent stays where it was."""
    serve = RecordingServer(
        chat_completion('{"ranking": [{"id": 3, "score": 0.9}, {"id": 2, "score": 0.4}, {"id": 1}]}')
    )
    async with reranked(index, serve) as response:
        assert [hit.id for hit in response.hits] == [fused[2], fused[1], fused[0], *fused[3:]]
        assert [hit.rerank for hit in response.hits] == [
            RerankedHit(1, 0.9),
            RerankedHit(2, 0.4),
            RerankedHit(3, None),
            UNSET,
            UNSET,
        ]
        assert response.degraded == ()
        assert response.next_cursor is None
        assert "rerank" in response.timings_ms
    sent = json.loads(serve.body["messages"][1]["content"])  # type: ignore[index]
    assert sent["query"] == "Alpha Centauri"
    assert [passage["text"][:2] for passage in sent["passages"]] == [f"T{id_[1:]}" for id_ in fused[:3]]


async def test_with_a_small_limit_the_reranker_still_gets_more_hits(index: EmbeddedIndex, fused: list[str]) -> None:
    async with reranked(index, RecordingServer(chat_completion("[3, 1, 2]")), limit=1) as response:
        assert [hit.id for hit in response.hits] == [fused[2]]


@pytest.mark.parametrize(
    ("max_hits", "chars"),
    [(3, 1_000), (20, 16_000 // 20)],
    ids=["the limit of each hit", "an equal part of the limit of all hits"],
)
async def test_the_text_that_the_reranker_gets_is_bounded(index: EmbeddedIndex, max_hits: int, chars: int) -> None:
    serve = RecordingServer(chat_completion(str(list(range(1, max_hits + 1)))))
    await index.write([vector_record(f"d{n}", "Alpha Centauri " * 200, seed=1) for n in range(20)], ())
    async with reranked(index, serve, settings=SETTINGS.changed(rerank_top=max_hits)) as response:
        assert response.degraded == ()
        sent = json.loads(serve.body["messages"][1]["content"])  # type: ignore[index]
        assert [len(passage["text"]) for passage in sent["passages"]] == [chars] * max_hits


@pytest.mark.parametrize("misbehaviour", MISBEHAVIOURS)
async def test_on_every_misbehaviour_the_fused_order_stays_and_it_is_reported(
    index: EmbeddedIndex, fused: list[str], misbehaviour: str
) -> None:
    start = perf_counter()
    async with reranked(index, MISBEHAVIOURS[misbehaviour][0]) as response:
        assert perf_counter() - start < 2
        assert [hit.id for hit in response.hits] == fused
        assert [each.source for each in response.degraded] == ["rerank"]
        assert response.degraded[0].reason
        assert all(hit.rerank is UNSET for hit in response.hits)


@pytest.mark.parametrize(
    ("reply", "order", "reason"),
    [
        ("[9, 3, 77]", (2, 0, 1), "the reranker returned 1 of 3 passages, 2 that do not exist"),
        ("[3, 3, 2, 3, 1]", (2, 1, 0), "the reranker 2 twice"),
        ("[3, 2]", (2, 1, 0), "the reranker returned 2 of 3 passages"),
    ],
    ids=["ids that do not exist", "duplicates", "half the list"],
)
async def test_the_valid_part_of_a_reply_is_used(
    index: EmbeddedIndex, fused: list[str], reply: str, order: Sequence[int], reason: str
) -> None:
    async with reranked(index, http("200 OK", json.dumps(chat_completion(reply)).encode())) as response:
        assert [hit.id for hit in response.hits] == [*(fused[n] for n in order), *fused[3:]]
        assert [(each.source, each.reason) for each in response.degraded] == [("rerank", reason)]


async def test_a_missing_reranker_is_reported(index: EmbeddedIndex, fused: list[str]) -> None:
    response = await search(search_service(index), "Alpha Centauri", mode="keyword", rerank=True)
    assert [hit.id for hit in response.hits] == fused
    assert "TRIVIUM_RERANKER" in response.degraded[0].reason


class BrokenReranker:
    async def rerank(self, query: str, passages: Sequence[str]) -> RerankResult:
        raise ZeroDivisionError


async def test_a_defect_in_the_reranker_leaves_the_fused_order(index: EmbeddedIndex, fused: list[str]) -> None:
    service = search_service(index, reranker=BrokenReranker())
    response = await search(service, "Alpha Centauri", mode="keyword", rerank=True)
    assert [hit.id for hit in response.hits] == fused
    assert [(each.source, each.reason) for each in response.degraded] == [("rerank", "internal error")]


class ReversingReranker:
    def __init__(self) -> None:
        self.passages: list[str] = []

    async def rerank(self, query: str, passages: Sequence[str]) -> RerankResult:
        self.passages += passages
        return RerankResult(tuple(reversed(range(len(passages)))))


async def test_a_sensitive_hit_is_not_sent_and_keeps_its_rank(index: EmbeddedIndex, fused: list[str]) -> None:
    spy = ReversingReranker()
    await index.write([vector_record(fused[1], "Alpha Centauri " * 4, seed=1, sensitivity="sensitive")], ())
    service = search_service(index, reranker=spy)
    principal = Principal("test", SCOPE, "restricted")
    before = await search(service, "Alpha Centauri", principal, mode="keyword")
    rank = [hit.id for hit in before.hits].index(fused[1])
    after = await search(service, "Alpha Centauri", principal, mode="keyword", rerank=True)
    assert after.hits[rank].id == fused[1]
    assert len(spy.passages) == 2
    assert not any(text == before.hits[rank].text for text in spy.passages)
