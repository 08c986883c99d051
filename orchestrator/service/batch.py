"""Searches of many lines: in order, a few at a time, and never in the way of other searches.

A line is one search like every other, with the same cache and the same admission, but it waits for its turn instead of
being rejected. While other requests come, one line is processed at a time, and it queues with them.
"""

from __future__ import annotations

import asyncio
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeAlias, TypeVar

import msgspec

from orchestrator.auth.principal import Principal
from orchestrator.execution.fair_queue import FairSlots
from orchestrator.schema.decode import InvalidInput, describe_decode_error
from orchestrator.schema.search_input import decode_search_request
from orchestrator.service.errors import Overloaded
from orchestrator.service.response_cache import EncodedResponse
from orchestrator.service.search import SearchService

T = TypeVar("T")

MAX_LINE_BYTES = 1_048_576
"""As of the body of a search."""
_LINES, _LINES_BESIDE_OTHERS = 4, 1
"""Lines of all batches that a process works at: while there are no other searches, and beside others."""
_REST = 3.0
"""How long a line beside other searches keeps its slot after its response, in terms of the time that it took: batches
take a quarter of the time at most, and most other searches find the process free."""
_QUIET_S = 0.5
"""Seconds after the last other search from which on there are none."""
_AHEAD = 8
"""Lines of one batch that are read before the first of them is written."""
_PATIENCE_S = 60.0
"""How long a line waits for its turn."""
_RETRY_S = 0.05
"""Seconds between two attempts of a line to queue, if the queue is full."""

Line: TypeAlias = tuple[int, "bytes | InvalidInput"]
"""The number of a line, from 1, and its content, or what is wrong with it."""
Outcome: TypeAlias = EncodedResponse | Exception
"""The response to a line, or why there is none."""


@dataclass(frozen=True)
class BatchService:
    """Searches of many lines. It belongs to one event loop."""

    search: SearchService
    clock: Callable[[], float] = perf_counter
    _slots: FairSlots = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_slots", FairSlots(self._max_lines))

    @property
    def _is_quiet(self) -> bool:
        return self.clock() - self.search.admission.interactive_at > _QUIET_S

    def _max_lines(self) -> int:
        return _LINES if self._is_quiet else _LINES_BESIDE_OTHERS

    async def run(
        self,
        lines: AsyncIterator[Line],
        principal: Principal,
        request_id: str,
        finish: Callable[[int, Outcome], T],
        write: Callable[[T], Awaitable[None]],
    ) -> None:
        """Process lines, and write the outcome of each in their order.

        A few lines are read ahead: reading waits while writing does.

        :param finish: makes what is written of the outcome of a line, as soon as there is one.
        :raises Exception: of reading or writing; then the rest is not processed.
        """
        waiting: asyncio.Queue[asyncio.Task[T] | None] = asyncio.Queue(_AHEAD)

        async def finished(number: int, line: bytes | InvalidInput) -> T:
            return finish(number, await self._outcome(line, principal, f"{request_id}-{number}"))

        async def read(group: asyncio.TaskGroup) -> None:
            async for number, line in lines:
                await waiting.put(group.create_task(finished(number, line)))
            await waiting.put(None)

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(read(group))
                while (task := await waiting.get()) is not None:
                    await write(await task)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _outcome(self, line: bytes | InvalidInput, principal: Principal, request_id: str) -> Outcome:
        """The outcome of one line. Every error is one of the line."""
        if isinstance(line, InvalidInput):
            return line
        expires_at = self.clock() + _PATIENCE_S
        try:
            request = decode_search_request(line)
            async with self._slots.slot(principal.scope.tenant, _PATIENCE_S):
                while True:
                    try:
                        response = await self.search.respond(request, principal, request_id, _PATIENCE_S)
                    except Overloaded:
                        if self.clock() >= expires_at:
                            raise
                        await asyncio.sleep(_RETRY_S)  # nothing reports that the queue has room again
                    else:
                        if response.timings and not self._is_quiet:
                            await asyncio.sleep(response.timings.total_ms() / 1_000 * _REST)
                        return response
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return InvalidInput(f"the line is {describe_decode_error(error)}")
        except TimeoutError:
            return Overloaded(over_quota=False)
        except Exception as error:
            return error


def too_long() -> InvalidInput:
    """What is wrong with a line of more than :data:`MAX_LINE_BYTES`."""
    return InvalidInput(f"the line has more than the {MAX_LINE_BYTES} bytes allowed")


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[Line]:
    """The lines of a text that comes in chunks, but the blank ones. Of a line that is too long nothing is kept."""
    number, line, is_too_long = 1, bytearray(), False

    def ended() -> bytes | InvalidInput | None:
        """The line that has ended; ``None`` if it is blank."""
        if is_too_long:
            return too_long()
        content = bytes(line).removeprefix(BOM_UTF8) if number == 1 else bytes(line)
        return content if content.strip() else None

    async for chunk in chunks:
        for index, piece in enumerate(chunk.split(b"\n")):
            if index:  # a line has ended
                if (content := ended()) is not None:
                    yield number, content
                number, is_too_long = number + 1, False
                line.clear()
            if len(line) + len(piece) > MAX_LINE_BYTES:
                is_too_long = True
                line.clear()
            elif not is_too_long:
                line += piece
    if (content := ended()) is not None:
        yield number, content
