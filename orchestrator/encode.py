"""What turns a query into a vector: the model, or the table that stands in for it when there is no time."""

from __future__ import annotations

import asyncio
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

    async def encode(self, text: str, in_flight: int) -> Encoded:
        """The vector of ``text``, given how many requests are in flight, this one included."""
        began = perf_counter()
        known = text in self._pending or self._memo.get(text) is not None
        if self._policy == "table" or (self._policy == "adaptive" and in_flight >= self._busy and not known):
            guess = self._table.encode(text)
            if guess is not None:
                return Encoded(guess, "table", (perf_counter() - began) * 1_000)
        vector = await self._by_model(text)
        return Encoded(vector, "model", (perf_counter() - began) * 1_000)

    async def _by_model(self, text: str) -> Vector:
        """What the model says, once for however many ask at the same time; who gives up leaves the others theirs."""
        vector = self._memo.get(text)
        if vector is None:
            if (task := self._pending.get(text)) is None:
                task = self._pending[text] = asyncio.ensure_future(self._model.encode(text))
                task.add_done_callback(lambda _: self._pending.pop(text))
            vector = await asyncio.shield(task)
            self._memo.put(text, vector)
        return vector
