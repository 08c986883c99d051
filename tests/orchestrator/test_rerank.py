"""Reranking through the engine, by a real HTTP stub: whatever the reranker does, the request succeeds in time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

import pytest
from msgspec import UNSET

from adapters import Judgement
from adapters.embedded import Library
from adapters.rerank import reranker
from orchestrator.contract import Reranked, SearchResponse
from tests.adapters.rerank.test_http import MISBEHAVIOURS, Listening, said
from tests.conftest import entry
from tests.orchestrator.engines import ask, engine, opened
from tests.servers.stub import Serve, http, stub

pytestmark = pytest.mark.anyio


@pytest.fixture
async def library(tmp_path: Path) -> Library:
    made = opened(tmp_path)
    texts = ["Alpha Centauri " * (5 - n) + "star " * n for n in range(5)]
    entries = [entry(f"d{n}", text, seed=1, title=f"T{n}") for n, text in enumerate(texts)]
    await made.write(entries, ())
    return made


@asynccontextmanager
async def answering(library: Library, serve: Serve, limit: int = 5, **asked: object) -> AsyncIterator[SearchResponse]:
    async with stub(serve) as port:
        made, close = reranker(f"chat+http://127.0.0.1:{port}/v1", "m", "", 0.2)
        assert close
        try:
            yield await ask(
                engine(library, reranker=made), "Alpha Centauri", mode="keyword", limit=limit, rerank=True, **asked
            )
        finally:
            await close()


@pytest.fixture
async def fused(library: Library) -> list[str]:
    return [hit.id for hit in (await ask(engine(library), "Alpha Centauri", mode="keyword")).hits]


async def test_the_best_few_stand_as_the_reranker_says(library: Library, fused: list[str]) -> None:
    """Three of five are sent (``top``): the third comes first, what was not sent stays where it was."""
    serve = Listening(said('{"ranking": [{"id": 3, "score": 0.9}, {"id": 2, "score": 0.4}, {"id": 1}]}'))
    async with answering(library, serve) as answer:
        assert [hit.id for hit in answer.hits] == [fused[2], fused[1], fused[0], *fused[3:]]
        assert [hit.rerank for hit in answer.hits] == [
            Reranked(1, 0.9),
            Reranked(2, 0.4),
            Reranked(3, None),
            UNSET,
            UNSET,
        ]
        assert answer.degraded == ()
        assert answer.next_cursor is None
        assert "rerank" in answer.timings_ms
    sent = json.loads(serve.body["messages"][1]["content"])  # type: ignore[index]
    assert sent["query"] == "Alpha Centauri"
    assert [passage["text"][:2] for passage in sent["passages"]] == [f"T{id_[1:]}" for id_ in fused[:3]]


async def test_a_small_limit_still_lets_it_choose_among_more(library: Library, fused: list[str]) -> None:
    async with answering(library, Listening(said("[3, 1, 2]")), limit=1) as answer:
        assert [hit.id for hit in answer.hits] == [fused[2]]


async def test_what_it_is_sent_is_bounded(library: Library) -> None:
    serve = Listening(said("[1, 2, 3]"))
    await_long = "Alpha Centauri " * 200
    await library.write([entry(f"d{n}", await_long, seed=1) for n in range(5)], ())
    async with answering(library, serve):
        sent = json.loads(serve.body["messages"][1]["content"])  # type: ignore[index]
        assert [len(passage["text"]) for passage in sent["passages"]] == [200] * 3


@pytest.mark.parametrize("how", MISBEHAVIOURS)
async def test_whatever_it_does_the_fused_order_stands_and_the_answer_says_so(
    library: Library, fused: list[str], how: str
) -> None:
    began = perf_counter()
    async with answering(library, MISBEHAVIOURS[how][0]) as answer:
        assert perf_counter() - began < 2
        assert [hit.id for hit in answer.hits] == fused
        assert [each.source for each in answer.degraded] == ["rerank"]
        assert answer.degraded[0].reason
        assert all(hit.rerank is UNSET for hit in answer.hits)


@pytest.mark.parametrize(
    ("written", "order", "reason"),
    [
        ("[9, 3, 77]", (2, 0, 1), "the reranker named 1 of 3 passages, 2 that are not there"),
        ("[3, 3, 2, 3, 1]", (2, 1, 0), "the reranker 2 twice"),
        ("[3, 2]", (2, 1, 0), "the reranker named 2 of 3 passages"),
    ],
    ids=["ids that do not exist", "duplicates", "half the list"],
)
async def test_what_is_sound_of_its_answer_counts(
    library: Library, fused: list[str], written: str, order: Sequence[int], reason: str
) -> None:
    async with answering(library, http("200 OK", json.dumps(said(written)).encode())) as answer:
        assert [hit.id for hit in answer.hits] == [*(fused[n] for n in order), *fused[3:]]
        assert [(each.source, each.reason) for each in answer.degraded] == [("rerank", reason)]


async def test_without_a_reranker_the_answer_says_so(library: Library, fused: list[str]) -> None:
    answer = await ask(engine(library), "Alpha Centauri", mode="keyword", rerank=True)
    assert [hit.id for hit in answer.hits] == fused
    assert "TRIVIUM_RERANKER" in answer.degraded[0].reason


class Raising:
    async def rerank(self, query: str, passages: Sequence[str]) -> Judgement:
        raise ZeroDivisionError


async def test_a_defect_in_it_costs_the_order_and_nothing_else(library: Library, fused: list[str]) -> None:
    answer = await ask(engine(library, reranker=Raising()), "Alpha Centauri", mode="keyword", rerank=True)
    assert [hit.id for hit in answer.hits] == fused
    assert [(each.source, each.reason) for each in answer.degraded] == [("rerank", "internal error")]


class Reversing:
    def __init__(self) -> None:
        self.read: list[str] = []

    async def rerank(self, query: str, passages: Sequence[str]) -> Judgement:
        self.read += passages
        return Judgement(tuple(reversed(range(len(passages)))))


async def test_what_is_too_guarded_is_not_sent_and_keeps_its_place(library: Library, fused: list[str]) -> None:
    secret = Reversing()
    await library.write([entry(fused[1], "Alpha Centauri " * 4, seed=1, sensitivity="sensitive")], ())
    from tests.orchestrator import engines

    made = engine(library, reranker=secret)
    caller = engines.Caller(engines.SCOPE, "restricted")
    asked = engines.SearchRequest(query="Alpha Centauri", mode="keyword", rerank=True, timeout_ms=5_000)
    before = await made.search(
        engines.SearchRequest(query="Alpha Centauri", mode="keyword", timeout_ms=5_000), caller, "r"
    )
    place = [hit.id for hit in before.hits].index(fused[1])
    after = await made.search(asked, caller, "r")
    assert after.hits[place].id == fused[1]
    assert len(secret.read) == 2
    assert not any(text == before.hits[place].text for text in secret.read)
