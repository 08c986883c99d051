"""Encodes queries with the model or the static encoder, as planned. The choice does not depend on the load.

The model runs on the event loop. If searches wait for servers, it runs in a thread of its own, one query at a time,
and waiting requests are served round-robin by tenant (docs/decisions/0003-inline-on-the-event-loop.md).
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from cachetools import LRUCache

from adapters.ports import QueryEncoder
from adapters.ports.encoders import Vector
from cache import hash_key
from orchestrator.execution.fair_queue import FairLock
from orchestrator.schema.search import EncoderName

MAX_VECTORS = 10_000
"""Vectors of the model that are cached."""
_ITERATIONS_BEFORE_ENCODING = 2
"""Event loop iterations before the model runs on the loop, after the one of the fan-out. A request that has arrived is
rejected in the third iteration: the first reads it, and the second starts its task."""


class StaticEncoder(Protocol):
    """An encoder that does not run the model."""

    def encode(self, text: str) -> Vector | None:
        """A unit vector, or ``None`` if it has no word of the text."""
        ...


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A query's vector, the encoder that made it, and the ms that it took."""

    vector: Vector
    encoder_used: EncoderName
    ms: float


class QueryEncoders:
    """The model, whose vectors are cached, and the static encoder, which needs no cache.

    :param thread: where the model runs; on the event loop if ``None``.
    """

    def __init__(
        self,
        model: QueryEncoder,
        static: StaticEncoder,
        max_vectors: int = MAX_VECTORS,
        thread: Executor | None = None,
    ) -> None:
        self.dimension = model.dimension
        self.encodes_texts = model.encodes_texts
        self.waits = thread is not None
        """Whether :meth:`encode` may wait for more than event loop iterations."""
        self._model = model
        self._static = static
        self._vectors: LRUCache[bytes, Vector] = LRUCache(max_vectors)
        self._thread = thread
        self._model_lock = FairLock()

    def without_model(self, text: str, encoder: EncoderName, tenant: str) -> EncodedQuery | None:
        """The vector of a text, if the model does not have to run for it.

        :param tenant: vectors are cached for each tenant, so that the time does not reveal searches of other tenants.
        """
        start = perf_counter()
        used, vector = encoder, self._static.encode(text) if encoder == "static" else None
        if vector is None:  # the model encodes a text without words of the static encoder
            used, vector = "model", self._vectors.get(_key(text, tenant))
        return None if vector is None else EncodedQuery(vector, used, (perf_counter() - start) * 1_000)

    async def encode(self, text: str, encoder: EncoderName, tenant: str) -> EncodedQuery:
        """The vector of a text; parameters as in :meth:`without_model`."""
        if self._thread is None:
            for _ in range(_ITERATIONS_BEFORE_ENCODING):
                await asyncio.sleep(0)
            return self.without_model(text, encoder, tenant) or await self._run_model(text, tenant)
        async with self._model_lock.turn_of(tenant):
            # Another request may have encoded it meanwhile.
            return self.without_model(text, encoder, tenant) or await self._run_model(text, tenant)

    async def _run_model(self, text: str, tenant: str) -> EncodedQuery:
        start = perf_counter()
        if self._thread is None:
            vector = self._model.encode(text)
        else:
            vector = await asyncio.get_running_loop().run_in_executor(self._thread, self._model.encode, text)
        self._vectors[_key(text, tenant)] = vector
        return EncodedQuery(vector, "model", (perf_counter() - start) * 1_000)


def _key(text: str, tenant: str) -> bytes:
    return hash_key(tenant, text)  # the text itself may have ten times the size of the vector
