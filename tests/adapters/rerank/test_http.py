"""The rerankers behind HTTP against a local stub, which says what such servers say, and worse."""

from __future__ import annotations

import asyncio
import json
import threading
from time import perf_counter

import anyio
import pytest

from adapters import AdapterError, BadResponse, Rejected, TimedOut, Unavailable
from adapters.rerank import NONE, check, reranker
from tests.secrets import keep_out
from tests.servers.start import free_port
from tests.servers.stub import Serve, http, stub

pytestmark = pytest.mark.anyio
TIMEOUT_S = 0.3
SECRET = keep_out("a-key-that-nobody-may-see")


class Listening:
    """Answers as it is told, and keeps what it was sent."""

    def __init__(self, answer: object) -> None:
        self.answer = json.dumps(answer).encode()
        self.head = ""
        self.body: dict[str, object] = {}

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(line for line in self.head.lower().split("\r\n") if line.startswith("content-length"))
        self.body = json.loads(await reader.readexactly(int(length.partition(":")[2])))
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(self.answer)}\r\n\r\n".encode() + self.answer)
        await writer.drain()


def said(content: object) -> dict[str, object]:
    return {"choices": [{"message": {"role": "assistant", "content": content}}]}


async def asked(address: str) -> object:
    made, close = reranker(address, "a-model", SECRET, TIMEOUT_S)
    assert made
    assert close
    try:
        return await made.rerank("a query", ["first", "second", "third"])
    finally:
        await close()


async def test_a_language_model_is_asked_by_number_and_answers_by_number() -> None:
    serve = Listening(said('{"ranking": [{"id": 3, "score": 0.8}, {"id": 1, "score": 0.2}, {"id": 2, "score": 0.1}]}'))
    async with stub(serve) as port:
        found = await asked(f"chat+http://127.0.0.1:{port}/api/v1/")
    assert found.order == (2, 0, 1)  # type: ignore[attr-defined]
    assert found.scores == {2: 0.8, 0: 0.2, 1: 0.1}  # type: ignore[attr-defined]
    assert serve.head.startswith("POST /api/v1/chat/completions HTTP/1.1")
    assert f"authorization: bearer {SECRET}" in serve.head.lower()
    assert (serve.body["model"], serve.body["temperature"]) == ("a-model", 0)
    user = serve.body["messages"][1]["content"]  # type: ignore[index]
    assert json.loads(user)["passages"][2] == {"id": 3, "text": "third"}


async def test_a_cross_encoder_is_given_the_documents_and_gives_scores() -> None:
    results = [{"index": 1, "relevance_score": 9.5}, {"index": 0, "relevance_score": -2}, {"index": 2, "score": -3.0}]
    for answer in ({"results": results}, results):
        serve = Listening(answer)
        async with stub(serve) as port:
            found = await asked(f"rerank+http://127.0.0.1:{port}/v1/rerank")
        assert (found.order, found.scores) == ((1, 0, 2), {1: 9.5, 0: -2.0, 2: -3.0})  # type: ignore[attr-defined]
        assert serve.head.startswith("POST /v1/rerank HTTP/1.1")
        assert serve.body == {
            "model": "a-model", "query": "a query", "documents": ["first", "second", "third"], "top_n": 3,
        }  # fmt: skip


async def _nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def _slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


MISBEHAVIOURS: dict[str, tuple[Serve, type[AdapterError]]] = {
    "nothing": (_nothing, TimedOut),
    "byte by byte": (_slowly, TimedOut),
    "hangs up": (_hangs_up, Unavailable),
    "500": (http("500 Internal Server Error", b"{}"), Unavailable),
    "429": (http("429 Too Many Requests", b"{}"), Unavailable),
    "401": (http("401 Unauthorized", b"{}"), Unavailable),
    "400": (http("400 Bad Request", b"{}"), Rejected),
    "elsewhere": (http("302 Found", b""), BadResponse),
    "no JSON": (http("200 OK", b"<html>"), BadResponse),
    "half of it": (http("200 OK", b'{"results": [', length=900), Unavailable),
    "deep JSON": (http("200 OK", b"[" * 100_000), BadResponse),
    "too much": (http("200 OK", b" " * 2_000_000), BadResponse),
    "another shape": (http("200 OK", b'{"unexpected": true}'), BadResponse),
    "no content": (http("200 OK", json.dumps(said(None)).encode()), BadResponse),
    "no order": (http("200 OK", json.dumps(said("I would rather not.")).encode()), BadResponse),
}


@pytest.mark.parametrize("kind", ["chat", "rerank"])
@pytest.mark.parametrize("how", MISBEHAVIOURS)
async def test_whatever_it_does_is_an_error_of_ours_in_time(kind: str, how: str) -> None:
    serve, expected = MISBEHAVIOURS[how]
    began = perf_counter()
    async with stub(serve) as port:
        with pytest.raises(expected) as caught:
            await asked(f"{kind}+http://127.0.0.1:{port}/v1")
    assert perf_counter() - began < TIMEOUT_S + 1
    assert SECRET not in str(caught.value)


async def test_a_key_that_no_header_can_hold_is_not_shown() -> None:
    async with stub(_nothing) as port:
        made, close = reranker(f"chat+http://127.0.0.1:{port}/v1", "m", f"{SECRET}\n", TIMEOUT_S)
        assert made
        assert close
        with pytest.raises(AdapterError) as caught:
            await made.rerank("q", ["a"])
        await close()
    assert SECRET not in str(caught.value)


async def test_where_nobody_listens_it_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="cannot be reached"):
        await asked(f"chat+http://127.0.0.1:{free_port()}/v1")


def by_length(query: str, passages: list[str]) -> list[float]:
    return [float(len(each)) for each in passages]


def too_few(query: str, passages: list[str]) -> list[float]:
    return [1.0]


def no_numbers(query: str, passages: list[str]) -> list[float]:
    return [float("nan")] * len(passages)


_GO_ON = threading.Event()


def slowly(query: str, passages: list[str]) -> list[float]:
    _GO_ON.wait(30)
    return [0.0] * len(passages)


HERE = "python://tests.adapters.rerank.test_http"


async def test_a_function_of_the_user_s_scores_passages() -> None:
    made, close = reranker(f"{HERE}:by_length", "", "", TIMEOUT_S)
    assert made
    assert close is None
    assert (await made.rerank("q", ["a", "ccc", "bb"])).order == (1, 2, 0)
    for name, complaint in (("too_few", "gave 1 scores for 2 passages"), ("no_numbers", "is no number")):
        other, _ = reranker(f"{HERE}:{name}", "", "", TIMEOUT_S)
        assert other
        with pytest.raises(Rejected, match=complaint):
            await other.rerank("q", ["a", "b"])


@pytest.mark.parametrize(
    "address",
    [
        "",
        "chat://x",
        "chat+ftp://host",
        "chat+http://",
        "chat+https://user:key@host/v1",
        "https://host",
        "rerank+http://h/?key=1",
    ],
)
def test_what_is_no_address_is_refused_without_being_shown(address: str) -> None:
    with pytest.raises(ValueError, match="no address of a reranker, allowed are none://") as caught:
        check(address)
    assert "key" not in str(caught.value)


async def test_calls_that_nobody_waits_for_any_more_are_bounded() -> None:
    made, _ = reranker(f"{HERE}:slowly", "", "", TIMEOUT_S)
    assert made
    refused = 0
    for _ in range(20):
        try:
            with anyio.move_on_after(0.01):
                await made.rerank("q", ["a"])
        except Unavailable:
            refused += 1
    assert refused == 20 - 8
    _GO_ON.set()


def test_none_is_none() -> None:
    assert reranker(NONE, "", "", 1.0) == (None, None)
