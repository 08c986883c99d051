"""Rerankers behind HTTP, against a local stub that answers as such servers do, and worse."""

from __future__ import annotations

import asyncio
import json
import threading
from time import perf_counter

import anyio
import pytest

from adapters import AdapterError, BadResponse, Rejected, TimedOut, Unavailable
from adapters.ports import RerankResult
from adapters.rerank import NONE, check, reranker
from tests.secrets import register_secret
from tests.servers.start import free_port
from tests.servers.stub import Serve, http, stub

pytestmark = pytest.mark.anyio
TIMEOUT_S, LONG_TIMEOUT_S = 0.3, 30.0
"""The short one only where it is to pass: a loaded machine may take longer to connect."""
SECRET = register_secret("a-key-that-must-not-be-shown")


class RecordingServer:
    """Answers every request with ``answer``, and records the last request."""

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


def chat_completion(content: object) -> dict[str, object]:
    return {"choices": [{"message": {"role": "assistant", "content": content}}]}


async def reranked(address: str, timeout_s: float = LONG_TIMEOUT_S) -> RerankResult:
    opened, close = reranker(address, "a-model", SECRET, timeout_s)
    assert opened
    assert close
    try:
        return await opened.rerank("a query", ["first", "second", "third"])
    finally:
        await close()


async def test_a_language_model_gets_and_returns_numbered_passages() -> None:
    serve = RecordingServer(
        chat_completion('{"ranking": [{"id": 3, "score": 0.8}, {"id": 1, "score": 0.2}, {"id": 2, "score": 0.1}]}')
    )
    async with stub(serve) as port:
        result = await reranked(f"chat+http://127.0.0.1:{port}/api/v1/")
    assert result.order == (2, 0, 1)
    assert result.scores == {2: 0.8, 0: 0.2, 1: 0.1}
    assert serve.head.startswith("POST /api/v1/chat/completions HTTP/1.1")
    assert f"authorization: bearer {SECRET}" in serve.head.lower()
    assert (serve.body["model"], serve.body["temperature"]) == ("a-model", 0)
    user = serve.body["messages"][1]["content"]  # type: ignore[index]
    assert json.loads(user)["passages"][2] == {"id": 3, "text": "third"}


async def test_a_cross_encoder_gets_documents_and_returns_scores() -> None:
    results = [{"index": 1, "relevance_score": 9.5}, {"index": 0, "relevance_score": -2}, {"index": 2, "score": -3.0}]
    for answer in ({"results": results}, results):
        serve = RecordingServer(answer)
        async with stub(serve) as port:
            result = await reranked(f"rerank+http://127.0.0.1:{port}/v1/rerank")
        assert (result.order, result.scores) == ((1, 0, 2), {1: 9.5, 0: -2.0, 2: -3.0})
        assert serve.head.startswith("POST /v1/rerank HTTP/1.1")
        assert serve.body == {
            "model": "a-model", "query": "a query", "documents": ["first", "second", "third"], "top_n": 3,
        }  # fmt: skip


async def _no_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def _byte_by_byte(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


MISBEHAVIOURS: dict[str, tuple[Serve, type[AdapterError]]] = {
    "no answer": (_no_answer, TimedOut),
    "byte by byte": (_byte_by_byte, TimedOut),
    "closes": (_closes, Unavailable),
    "500": (http("500 Internal Server Error", b"{}"), Unavailable),
    "429": (http("429 Too Many Requests", b"{}"), Unavailable),
    "401": (http("401 Unauthorized", b"{}"), Unavailable),
    "400": (http("400 Bad Request", b"{}"), Rejected),
    "redirect": (http("302 Found", b""), BadResponse),
    "no JSON": (http("200 OK", b"<html>"), BadResponse),
    "truncated": (http("200 OK", b'{"results": [', length=900), Unavailable),
    "deep JSON": (http("200 OK", b"[" * 100_000), BadResponse),
    "too long": (http("200 OK", b" " * 2_000_000), BadResponse),
    "another shape": (http("200 OK", b'{"unexpected": true}'), BadResponse),
    "no content": (http("200 OK", json.dumps(chat_completion(None)).encode()), BadResponse),
    "no order": (http("200 OK", json.dumps(chat_completion("I would rather not.")).encode()), BadResponse),
}


@pytest.mark.parametrize("kind", ["chat", "rerank"])
@pytest.mark.parametrize("misbehaviour", MISBEHAVIOURS)
async def test_every_misbehaviour_is_an_adapter_error_in_time(kind: str, misbehaviour: str) -> None:
    serve, expected = MISBEHAVIOURS[misbehaviour]
    timeout_s = TIMEOUT_S if expected is TimedOut else LONG_TIMEOUT_S
    began = perf_counter()
    async with stub(serve) as port:
        with pytest.raises(expected) as caught:
            await reranked(f"{kind}+http://127.0.0.1:{port}/v1", timeout_s)
    assert perf_counter() - began < LONG_TIMEOUT_S
    assert SECRET not in str(caught.value)


async def test_a_key_that_is_not_allowed_in_a_header_is_not_shown() -> None:
    async with stub(_no_answer) as port:
        opened, close = reranker(f"chat+http://127.0.0.1:{port}/v1", "m", f"{SECRET}\n", TIMEOUT_S)
        assert opened
        assert close
        with pytest.raises(AdapterError) as caught:
            await opened.rerank("q", ["a"])
        await close()
    assert SECRET not in str(caught.value)


async def test_a_server_that_does_not_listen_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="cannot be reached"):
        await reranked(f"chat+http://127.0.0.1:{free_port()}/v1")


def by_length(query: str, passages: list[str]) -> list[float]:
    return [float(len(each)) for each in passages]


def too_few(query: str, passages: list[str]) -> list[float]:
    return [1.0]


def not_numbers(query: str, passages: list[str]) -> list[float]:
    return [float("nan")] * len(passages)


_RELEASED = threading.Event()


def blocked(query: str, passages: list[str]) -> list[float]:
    _RELEASED.wait(30)
    return [0.0] * len(passages)


HERE = "python://tests.adapters.rerank.test_http"


async def test_a_function_of_the_user_s_scores_passages() -> None:
    opened, close = reranker(f"{HERE}:by_length", "", "", TIMEOUT_S)
    assert opened
    assert close is None
    assert (await opened.rerank("q", ["a", "ccc", "bb"])).order == (1, 2, 0)
    for name, message in (("too_few", "returned 1 scores for 2 passages"), ("not_numbers", "is not a number")):
        other, _ = reranker(f"{HERE}:{name}", "", "", TIMEOUT_S)
        assert other
        with pytest.raises(Rejected, match=message):
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
def test_an_invalid_address_is_rejected_without_being_shown(address: str) -> None:
    with pytest.raises(ValueError, match="not an address of a reranker, it must be one of none://") as caught:
        check(address)
    assert "key" not in str(caught.value)


async def test_the_number_of_cancelled_calls_is_limited() -> None:
    opened, _ = reranker(f"{HERE}:blocked", "", "", TIMEOUT_S)
    assert opened
    rejected = 0
    for _ in range(20):
        try:
            with anyio.move_on_after(0.01):
                await opened.rerank("q", ["a"])
        except Unavailable:
            rejected += 1
    assert rejected == 20 - 8
    _RELEASED.set()


def test_the_address_none_has_no_reranker() -> None:
    assert reranker(NONE, "", "", 1.0) == (None, None)
