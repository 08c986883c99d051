"""Requests that wait for a busy server: the server here is a function that answers when the test lets it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from weakref import WeakSet

import anyio
import pytest

from adapters import BadResponse, ExecutionFailed, Rejected, TimedOut, Unavailable
from adapters.servers.batcher import MAX_CALLS, MAX_REQUESTS, Batcher
from orchestrator.retrieval.circuit_breakers import MAX_FAILURES

pytestmark = pytest.mark.anyio

TRACE: ContextVar[str] = ContextVar("trace", default="no trace")


class Server:
    """Records each call, and answers it after :meth:`answer_call`."""

    def __init__(self, answer: Callable[[str], str | Exception] = str.upper) -> None:
        self.calls: list[list[str]] = []
        self.traces: list[str] = []
        self.cancelled: list[list[str]] = []
        self.answer = answer
        self._received = asyncio.Condition()
        self._answers: list[asyncio.Event] = []

    async def call(self, requests: Sequence[str]) -> list[str | Exception]:
        answered = asyncio.Event()
        async with self._received:
            self.calls.append(list(requests))
            self.traces.append(TRACE.get())
            self._answers.append(answered)
            self._received.notify_all()
        try:
            await answered.wait()
        except asyncio.CancelledError:
            self.cancelled.append(list(requests))
            raise
        return [self.answer(request) for request in requests]

    async def received(self, count: int) -> None:
        """Wait until so many calls have come."""
        async with asyncio.timeout(10), self._received:
            await self._received.wait_for(lambda: len(self.calls) >= count)

    def answer_call(self, number: int) -> None:
        self._answers[number].set()


class Clients:
    """Send requests, each in a task of its own."""

    def __init__(self, server: Server) -> None:
        self.batcher = Batcher("the server", server.call)
        self.tasks: list[asyncio.Task[str]] = []

    async def send(self, *requests: str, key: str = "") -> list[asyncio.Task[str]]:
        sent = [asyncio.create_task(self.batcher.send(request, lambda: key)) for request in requests]
        self.tasks += sent
        await run_other_tasks()
        return sent


async def run_other_tasks() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call at a time, and requests wait for its end, however long that takes."""
    monkeypatch.setattr("adapters.servers.batcher.MAX_CALLS", 1)
    monkeypatch.setattr("adapters.servers.batcher.MAX_WAIT_S", 3_600.0)


@pytest.fixture
async def server() -> Server:
    return Server()


@pytest.fixture
async def clients(server: Server) -> AsyncIterator[Clients]:
    started = Clients(server)
    yield started
    for task in started.tasks:
        task.cancel()
    await asyncio.gather(*started.tasks, return_exceptions=True)


async def busy(server: Server, clients: Clients, calls: int = 1) -> list[asyncio.Task[str]]:
    """Send requests that go out at once."""
    sent = await clients.send(*(f"first{number}" for number in range(calls)))
    assert server.calls[-calls:] == [[f"first{number}"] for number in range(calls)]
    return sent


async def test_a_request_goes_out_at_once_and_alone_unless_the_server_is_busy(server: Server, clients: Clients) -> None:
    for number in range(5):
        (sent,) = await clients.send(f"request{number}")
        assert server.calls[number:] == [[f"request{number}"]]
        server.answer_call(number)
        assert await sent == f"REQUEST{number}"


@pytest.mark.usefixtures("one_call")
async def test_requests_that_wait_go_out_together_when_a_call_ends(server: Server, clients: Clients) -> None:
    first = await busy(server, clients)
    waiting = await clients.send("a", "b", "c")
    assert len(server.calls) == 1
    server.answer_call(0)
    await server.received(2)
    assert server.calls[1:] == [["a", "b", "c"]]
    server.answer_call(1)
    assert await asyncio.gather(*first, *waiting) == ["FIRST0", "A", "B", "C"]


@pytest.mark.usefixtures("one_call")
async def test_a_call_has_a_maximum_of_requests(server: Server, clients: Clients) -> None:
    await busy(server, clients)
    names = [str(number) for number in range(MAX_REQUESTS + 1)]
    await clients.send(*names)
    for number in range(2):
        server.answer_call(number)
        await server.received(number + 2)
    assert server.calls[1:] == [names[:-1], names[-1:]]


async def test_a_call_takes_no_more_than_its_share_of_all_that_wait(
    server: Server, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server works on the requests of one call one after another, but on several calls at once."""
    monkeypatch.setattr("adapters.servers.batcher.MAX_WAIT_S", 3_600.0)
    await busy(server, clients, MAX_CALLS)
    await clients.send(*(str(number) for number in range(3 * MAX_CALLS)))
    server.answer_call(0)
    await server.received(MAX_CALLS + 1)
    assert server.calls[MAX_CALLS:] == [["0", "1", "2"]]


@pytest.mark.usefixtures("one_call")
async def test_only_equal_keys_go_out_together_and_those_that_came_first_go_first(
    server: Server, clients: Clients
) -> None:
    await busy(server, clients)
    await clients.send("a", key="one")
    await clients.send("b", key="other")
    await clients.send("c", key="one")
    for number in range(2):
        server.answer_call(number)
        await server.received(number + 2)
    assert server.calls[1:] == [["a", "c"], ["b"]]


async def test_no_request_waits_for_long(server: Server, clients: Clients) -> None:
    """All calls hang."""
    await busy(server, clients, MAX_CALLS)
    waiting = await clients.send("a", "b")
    await server.received(MAX_CALLS + 1)
    server.answer_call(MAX_CALLS)
    assert await asyncio.gather(*waiting) == ["A", "B"]
    assert server.calls[MAX_CALLS:] == [["a", "b"]]


@pytest.mark.usefixtures("one_call")
async def test_a_request_that_is_given_up_while_it_waits_is_not_sent(server: Server, clients: Clients) -> None:
    await busy(server, clients)
    first, _ = await clients.send("a", "b")
    (only,) = await clients.send("c", key="other")
    first.cancel()
    only.cancel()
    await run_other_tasks()
    for number in range(2):
        server.answer_call(number)
        await server.received(2)
        await run_other_tasks()
    assert server.calls[1:] == [["b"]]


@pytest.mark.usefixtures("one_call")
async def test_a_call_goes_on_until_the_last_of_its_requests_is_given_up(server: Server, clients: Clients) -> None:
    await busy(server, clients)
    first, second = await clients.send("a", "b")
    server.answer_call(0)
    await server.received(2)
    first.cancel()
    await run_other_tasks()
    assert server.cancelled == []
    second.cancel()
    await run_other_tasks()
    assert server.cancelled == [["a", "b"]]


@pytest.mark.usefixtures("one_call")
async def test_calls_that_are_cancelled_make_room_for_others(server: Server, clients: Clients) -> None:
    (alone,) = await busy(server, clients)
    alone.cancel()
    await run_other_tasks()
    await busy(server, clients)
    (waiting,) = await clients.send("a")
    server.answer_call(1)
    await server.received(3)
    waiting.cancel()
    await run_other_tasks()
    assert server.cancelled == [["first0"], ["a"]]
    await busy(server, clients)


@pytest.mark.usefixtures("one_call")
async def test_each_request_has_an_error_of_its_own(server: Server, clients: Clients) -> None:
    server.answer = lambda request: BadResponse(request) if request == "b" else request.upper()
    await busy(server, clients)
    waiting = await clients.send("a", "b")
    for number in range(2):
        server.answer_call(number)
        await server.received(2)
    assert await waiting[0] == "A"
    with pytest.raises(BadResponse, match="b"):
        await waiting[1]


async def results_of_calls(fails: Callable[[Sequence[str]], bool], error: Exception) -> tuple[list[object], list[str]]:
    """The responses to the requests x, a, b and c, of which a to c wait together; and the calls that were made."""
    calls: list[str] = []
    proceed = asyncio.Event()

    async def call(requests: Sequence[str]) -> Sequence[str | Exception]:
        calls.append("".join(requests))
        await proceed.wait()
        if fails(requests):
            raise error
        return requests

    batcher = Batcher("the server", call)
    sent = [asyncio.create_task(batcher.send(request)) for request in "xabc"]
    await run_other_tasks()
    proceed.set()
    results: list[object] = [*await asyncio.gather(*sent, return_exceptions=True)]
    assert await batcher.send("d") == "d"
    return results, calls


@pytest.mark.usefixtures("one_call")
@pytest.mark.parametrize("error", [Rejected("wrong"), ExecutionFailed("failed"), BadResponse("what?")], ids=repr)
async def test_if_one_request_may_be_at_fault_each_is_sent_again_by_itself(error: Exception) -> None:
    results, calls = await results_of_calls(lambda requests: "b" in requests, error)
    assert results == ["x", "a", error, "c"]
    assert calls == ["x", "abc", "a", "b", "c", "d"]


@pytest.mark.usefixtures("one_call")
@pytest.mark.parametrize("error", [Unavailable("away"), TimedOut("late"), ValueError("a defect")], ids=repr)
async def test_if_a_call_fails_each_of_its_requests_fails(error: Exception) -> None:
    results, calls = await results_of_calls(lambda requests: len(requests) > 1, error)
    assert results == ["x", error, error, error]
    assert calls == ["x", "abc", "d"]


@pytest.mark.usefixtures("one_call")
async def test_requests_that_are_given_up_are_not_sent_again(server: Server, clients: Clients) -> None:
    def fail(_: str) -> str:
        raise Rejected("wrong")

    await busy(server, clients)
    first, second = await clients.send("a", "b")
    server.answer_call(0)
    await server.received(2)
    server.answer = fail
    first.cancel()
    await run_other_tasks()
    server.answer_call(1)
    await server.received(3)
    assert server.calls[1:] == [["a", "b"], ["b"]]
    server.answer = str.upper
    server.answer_call(2)
    assert await second == "B"


@pytest.mark.usefixtures("one_call")
async def test_a_call_that_the_driver_cancels_fails_its_requests(server: Server, clients: Clients) -> None:
    """gRPC does so when a client is closed."""

    def cancel(_: str) -> str:
        raise asyncio.CancelledError

    await busy(server, clients)
    waiting = await clients.send("a", "b")
    server.answer_call(0)
    await server.received(2)
    server.answer = cancel
    server.answer_call(1)
    for each in waiting:
        with pytest.raises(Unavailable, match="a call to the server was cancelled"):
            await each
    server.answer = str.upper
    await busy(server, clients)


@pytest.mark.parametrize("count", [0, 2])
async def test_a_call_with_another_number_of_responses_is_refused(count: int) -> None:
    async def call(requests: Sequence[str]) -> Sequence[str]:
        return ["answer"] * count

    with pytest.raises(BadResponse, match=f"the server returned {count} responses to 1 requests"):
        await Batcher("the server", call).send("a")


def test_one_failed_call_does_not_open_the_circuit_of_a_source() -> None:
    assert MAX_REQUESTS < MAX_FAILURES


@pytest.mark.usefixtures("one_call")
async def test_a_call_runs_in_the_context_of_its_first_request(server: Server, clients: Clients) -> None:
    """And not in that of the request whose call has ended: the trace of a search goes to the server."""
    await busy(server, clients)
    for name in ("a", "b"):
        token = TRACE.set(f"trace of {name}")
        await clients.send(name)
        TRACE.reset(token)
    server.answer_call(0)
    await server.received(2)
    assert server.traces == ["no trace", "trace of a"]


class Response:
    """An object whose end can be seen."""


@pytest.mark.parametrize("use_uvloop", [False, True])
def test_no_response_has_to_wait_for_a_full_garbage_collection(use_uvloop: bool) -> None:
    responses: WeakSet[Response] = WeakSet()

    async def call(requests: Sequence[int]) -> list[Response | Exception]:
        await asyncio.sleep(0)
        answers: list[Response | Exception] = [Response() for _ in requests]
        responses.update(each for each in answers if isinstance(each, Response))
        return answers

    async def send() -> None:
        batcher = Batcher("the server", call)
        sent = await asyncio.gather(*(batcher.send(number) for number in range(MAX_CALLS + 3 * MAX_REQUESTS)))
        assert len(sent) == len(responses) == MAX_CALLS + 3 * MAX_REQUESTS
        del sent
        await run_other_tasks()
        assert not responses

    gc.collect()
    gc.disable()
    try:
        anyio.run(send, backend_options={"use_uvloop": use_uvloop})
    finally:
        gc.enable()
