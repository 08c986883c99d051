"""Encoding of queries: by the model, or by the static encoder if there is no time for the model."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from time import perf_counter
from typing import Literal, Protocol, TypeAlias

from cachetools import LRUCache

from adapters import QueryEncoder
from adapters.ports.encoders import Vector
from cache import SingleFlight

EncoderName: TypeAlias = Literal["model", "static"]
PolicyName: TypeAlias = Literal["adaptive", "model", "static"]

MAX_VECTORS = 10_000
"""Vectors of the model that are cached."""
BUSY_FROM = 2
"""Running requests from which ``adaptive`` uses the static encoder."""


class StaticEncoder(Protocol):
    """An encoder without a model run."""

    def encode(self, text: str) -> Vector | None:
        """A unit vector, or ``None`` if it knows no word of the text."""
        ...


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A query's vector, the encoder that made it, and the ms that it took."""

    vector: Vector
    encoder_used: EncoderName
    ms: float


class QueryEncoderPolicy:
    """Encodes queries.

    ``adaptive`` uses the model while fewer than ``busy_from`` requests are running, and the static encoder beyond. A
    vector of the model that is cached, or being computed, is used at any load. So the same request gets the same
    response, and a burst of different ones is encoded by the static encoder.

    :param load: number of requests that are running or waiting.
    """

    def __init__(
        self,
        model: QueryEncoder,
        static: StaticEncoder,
        policy: PolicyName,
        load: Callable[[], int],
        busy_from: int = BUSY_FROM,
        max_vectors: int = MAX_VECTORS,
    ) -> None:
        self.dimension = model.dimension
        self._model = model
        self._static = static
        self._policy = policy
        self._load = load
        self._busy_from = busy_from
        self._vectors: LRUCache[str, Vector] = LRUCache(max_vectors)
        self._running: SingleFlight[Vector] = SingleFlight()

    def encode(self, text: str, encoder: str = "") -> Coroutine[None, None, EncodedQuery]:
        """The vector of a text.

        :param encoder: ``model`` or ``static`` where it has to be the one of an earlier page; otherwise the policy
            decides.

        The encoder is chosen by the call itself, not when its result is awaited, so that a later request for the same
        text uses the run of the model that this one starts.
        """
        known = text in self._running or text in self._vectors
        adaptive = self._policy == "adaptive" and (known or self._load() < self._busy_from)
        if encoder == "model" or (encoder != "static" and (self._policy == "model" or adaptive)):
            return self._by_model(text)
        return self._by_static(text)

    async def _by_static(self, text: str) -> EncodedQuery:
        start = perf_counter()
        vector = self._static.encode(text)
        if vector is None:
            return await self._by_model(text)
        return EncodedQuery(vector, "static", (perf_counter() - start) * 1_000)

    def _by_model(self, text: str) -> Coroutine[None, None, EncodedQuery]:
        """One run of the model for all requests with the same text; it is cancelled when its last waiter leaves."""
        start = perf_counter()
        running = None if text in self._vectors else self._running.attach(text, lambda: self._run_model(text))

        async def result() -> EncodedQuery:
            vector = self._vectors.get(text) if running is None else await running
            if vector is None:  # evicted in between
                vector = await self._run_model(text)
            return EncodedQuery(vector, "model", (perf_counter() - start) * 1_000)

        return result()

    async def _run_model(self, text: str) -> Vector:
        vector = await self._model.encode(text)
        self._vectors[text] = vector
        return vector
