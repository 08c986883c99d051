"""Requests to a server that are sent together while it is busy, and alone otherwise.

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
"""Maximum number of calls at a time; further requests wait."""
MAX_REQUESTS = 4
"""Maximum number of requests of one call: all wait for the slowest of them, and may fail with it. It is lower than the
number of failures in a row that open the circuit of a source."""
MAX_WAIT_S = 0.02
"""Maximum wait of a request; then it is sent in an additional call."""


@dataclass(slots=True, eq=False)
class _Pending(Generic[Request, Response]):
    """A request that has to wait.

    :param context: of the request; a call has the context, and so the trace, of its first request.
    """

    request: Request
    key: Hashable
    response: asyncio.Future[Response]
    context: Context
    timer: asyncio.TimerHandle = field(init=False)
    call: asyncio.Task[None] = field(init=False)
    of_call: Sequence[_Pending[Request, Response]] = ()

    def stop_timer(self) -> None:
        """Cancel and delete the timer: a cancelled timer of uvloop references this request, and so its response."""
        self.timer.cancel()
        del self.timer


class Batcher(Generic[Request, Response]):
    """Sends requests. It belongs to one event loop.

    :param server: its name in error messages.
    :param call: sends requests in one call; returns the response to each, or its error, in their order.
    """

    def __init__(
        self, server: str, call: Callable[[Sequence[Request]], Coroutine[Any, Any, Sequence[Response | Exception]]]
    ) -> None:
        self._server = server
        self._call = call
        self._calls = 0
        self._waiting: list[_Pending[Request, Response]] = []
        self._running: set[asyncio.Task[None]] = set()
        """The calls that have not ended: the event loop has only weak references to them."""

    async def send(self, request: Request, key: Callable[[], Hashable] = lambda: None) -> Response:
        """The response to a request.

        Cancelling one caller does not affect the others of a call; the call is cancelled with the last of them. If one
        request may have caused the failure of a call, each is sent again alone, one after another.

        :param key: only requests with equal keys are sent in one call.
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
            # The waiting requests are divided among the calls: most servers process the requests of one call one after
            # another, but several calls at once.
            share = min(ceil(len(self._waiting) / MAX_CALLS), MAX_REQUESTS)
            self._start_call(self._waiting[0], share)

    def _start_call(self, first: _Pending[Request, Response], max_requests: int) -> None:
        """Send a request, with the oldest waiting requests of its key."""
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
                each.response.set_exception(Unavailable(f"a call to {self._server} was cancelled"))
            each.of_call = ()  # otherwise a reference cycle delays the deallocation of the responses
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
            raise BadResponse(f"{self._server} returned {len(responses)} responses to {len(requests)} requests")
        return responses
