"""What turns a query into a vector: the model, or the table that stands in for it when there is no time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from time import perf_counter
from typing import Literal, Protocol, TypeAlias

from adapters import QueryEncoder
from adapters.port import Vector
from cache import Memo

Policy: TypeAlias = Literal["adaptive", "model", "table"]


class FastEncoder(Protocol):
    """An encoder that answers at once."""

    def encode(self, text: str) -> Vector | None:
        """A unit vector, or ``None`` where it has nothing to say."""
        ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """A query's vector, what made it (``model`` or ``table``), and how many ms that took."""

    vector: Vector
    by: Literal["model", "table"]
    ms: float


class Encoding:
    """Encodes queries by a policy.

    ``adaptive`` spends processor time that nobody else wants: the model while fewer than ``busy`` requests are in
    flight, the table beyond. What the model has said, or is just saying, is what everybody gets who asks the same,
    whatever the load. So the same request gives the same answer, and a flood of different ones is served by the table.
    """

    def __init__(self, model: QueryEncoder, table: FastEncoder, policy: Policy, busy: int, memo_entries: int) -> None:
        self.dimension = model.dimension
        self._model = model
        self._table = table
        self._policy = policy
        self._busy = busy
        self._memo: Memo[str, Vector] = Memo(memo_entries)
        self._pending: dict[str, asyncio.Future[Vector]] = {}

    def encode(self, text: str, in_flight: int, by: str | None = None) -> Coroutine[None, None, Encoded]:
        """The vector of ``text``, given how many requests are in flight, this one included.

        :param by: ``model`` or ``table``, where it must be what it was before; whatever else leaves it to the policy.

        Who encodes is decided by the call itself and not when it is awaited: whoever asks the same a moment later
        finds the model at work on it, and takes its answer too.
        """
        known = text in self._pending or self._memo.get(text) is not None
        adaptive = self._policy == "adaptive" and (known or in_flight < self._busy)
        if by == "model" or (by != "table" and (self._policy == "model" or adaptive)):
            self._start(text)
            return self._by_model(text)
        return self._by_table(text)

    async def _by_table(self, text: str) -> Encoded:
        began = perf_counter()
        guess = self._table.encode(text)
        if guess is None:
            return await self._by_model(text)
        return Encoded(guess, "table", (perf_counter() - began) * 1_000)

    async def _by_model(self, text: str) -> Encoded:
        """What the model says, once for however many ask at the same time; who gives up leaves the others theirs."""
        began = perf_counter()
        vector = self._memo.get(text)
        if vector is None:
            vector = await asyncio.shield(self._start(text))
        return Encoded(vector, "model", (perf_counter() - began) * 1_000)

    def _start(self, text: str) -> asyncio.Future[Vector]:
        """The model at work on a text, or done with it."""
        if (vector := self._memo.get(text)) is not None:
            done: asyncio.Future[Vector] = asyncio.get_running_loop().create_future()
            done.set_result(vector)
            return done
        if (task := self._pending.get(text)) is None:
            task = self._pending[text] = asyncio.ensure_future(self._model.encode(text))
            task.add_done_callback(lambda ended: self._finish(text, ended))
        return task

    def _finish(self, text: str, ended: asyncio.Future[Vector]) -> None:
        """In one step from being computed to being remembered. A failure is for those who wait."""
        del self._pending[text]
        if not ended.cancelled() and ended.exception() is None:
            self._memo.put(text, ended.result())
