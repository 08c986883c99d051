"""Requests to a server that go out together while it is busy, and by themselves otherwise.

One call for several requests costs this process and the server less than one call for each; see decision 30.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Generic, TypeVar

from adapters.model.errors import BadResponse, ExecutionFailed, Rejected, Unavailable

Request = TypeVar("Request")
Response = TypeVar("Response")

MAX_CALLS = 3
"""Calls at a time; while there are as many, further requests wait."""
MAX_REQUESTS = 4
"""Requests of one call: all wait for the slowest of them, and may fail with it. Fewer than the failures in a row that
open the circuit of a source."""
MAX_WAIT_S = 0.02
"""After it a request goes out in any case, in one more call."""


@dataclass(slots=True, eq=False)
class _Pending(Generic[Request, Response]):
    """A request that has to wait.

    :param context: of the request: its trace is that of the call, if it is the first of it.
    """

    request: Request
    key: Hashable
    response: asyncio.Future[Response]
    context: Context
    timer: asyncio.TimerHandle = field(init=False)
    call: asyncio.Task[None] = field(init=False)
    of_call: Sequence[_Pending[Request, Response]] = ()

    def stop_timer(self) -> None:
        """Drop it, too: a cancelled timer of uvloop keeps its arguments, which are this request with its response."""
        self.timer.cancel()
        del self.timer


class Batcher(Generic[Request, Response]):
    """Sends requests. It belongs to one event loop.

    :param server: its name in error messages.
    :param call: sends requests in one call; the response to each, in their order, or the error of this one request.
    """

    def __init__(
        self, server: str, call: Callable[[Sequence[Request]], Coroutine[Any, Any, Sequence[Response | Exception]]]
    ) -> None:
        self._server = server
        self._call = call
        self._calls = 0
        self._waiting: list[_Pending[Request, Response]] = []
        self._running: set[asyncio.Task[None]] = set()
        """Referenced until they have ended, which a cancelled one does later: the event loop does so only weakly."""

    async def send(self, request: Request, key: Callable[[], Hashable] = lambda: None) -> Response:
        """The response to a request.

        The caller has a deadline of its own: if it is cancelled, the others of the call go on, and the call is
        cancelled with the last of them. If a call fails in a way that may be the fault of one request, each is sent
        again by itself, one after another.

        :param key: only requests with equal keys go out in one call.
        :raises AdapterError: as ``call`` does, or for this request alone.
        """
        if self._calls >= MAX_CALLS:
            return await self._wait(request, key())
        self._calls += 1
        try:
            (response,) = await self._responses([request])
        finally:
            self._end_call()
        if isinstance(response, Exception):
            raise response
        return response

    async def _wait(self, request: Request, key: Hashable) -> Response:
        loop = asyncio.get_running_loop()
        pending: _Pending[Request, Response] = _Pending(request, key, loop.create_future(), copy_context())
        pending.timer = loop.call_later(MAX_WAIT_S, self._start_call, pending, MAX_REQUESTS)
        self._waiting.append(pending)
        try:
            return await pending.response
        except asyncio.CancelledError:
            if pending in self._waiting:
                self._waiting.remove(pending)
                pending.stop_timer()
            elif all(each.response.done() for each in pending.of_call):
                pending.call.cancel()
            raise

    def _end_call(self) -> None:
        self._calls -= 1
        while self._waiting and self._calls < MAX_CALLS:
            # No more than its share of all that wait: most servers work on the requests of one call one after another,
            # but on several calls at once.
            share = min(ceil(len(self._waiting) / MAX_CALLS), MAX_REQUESTS)
            self._start_call(self._waiting[0], share)

    def _start_call(self, first: _Pending[Request, Response], max_requests: int) -> None:
        """Send a request, with those of its key that have waited for longest."""
        others = [each for each in self._waiting if each.key == first.key and each is not first]
        sent = [first, *others[: max_requests - 1]]
        self._waiting = [each for each in self._waiting if each not in sent]
        call = asyncio.get_running_loop().create_task(self._respond(sent), context=first.context)
        for each in sent:
            each.stop_timer()
            each.call, each.of_call = call, sent
        self._calls += 1
        self._running.add(call)
        call.add_done_callback(lambda _: self._ended(call, sent))

    def _ended(self, call: asyncio.Task[None], sent: Sequence[_Pending[Request, Response]]) -> None:
        self._running.discard(call)
        for each in sent:
            if not each.response.done():  # the driver has cancelled the call
                each.response.set_exception(Unavailable(f"a call of {self._server} was abandoned"))
            each.of_call = ()  # otherwise a cycle keeps the responses until a full garbage collection
        self._end_call()

    async def _respond(self, sent: Sequence[_Pending[Request, Response]]) -> None:
        try:
            responses = await self._responses([each.request for each in sent])
        except (Rejected, ExecutionFailed, BadResponse) as error:
            if len(sent) > 1:
                for each in sent:
                    if not each.response.done():
                        await self._respond([each])
                return
            responses = [error]
        except Exception as error:  # each caller gets it
            responses = [error] * len(sent)
        for pending, response in zip(sent, responses, strict=True):
            if pending.response.done():
                continue
            if isinstance(response, Exception):
                pending.response.set_exception(response)
            else:
                pending.response.set_result(response)

    async def _responses(self, requests: Sequence[Request]) -> Sequence[Response | Exception]:
        responses = await self._call(requests)
        if len(responses) != len(requests):
            raise BadResponse(f"{self._server} answered {len(responses)} of {len(requests)} requests")
        return responses
