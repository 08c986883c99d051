"""Encoding of queries: by the model or by the static encoder, as the plan says. Load never decides it."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from cachetools import LRUCache

from adapters import QueryEncoder
from adapters.ports.encoders import Vector
from cache import SingleFlight
from orchestrator.schema.search import EncoderName

MAX_VECTORS = 10_000
"""Vectors of the model that are cached."""


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


class QueryEncoders:
    """The model, whose vectors are cached, and the static encoder, which is fast enough without."""

    def __init__(self, model: QueryEncoder, static: StaticEncoder, max_vectors: int = MAX_VECTORS) -> None:
        self.dimension = model.dimension
        self._model = model
        self._static = static
        self._vectors: LRUCache[str, Vector] = LRUCache(max_vectors)
        self._running: SingleFlight[Vector] = SingleFlight()

    def encode_now(self, text: str, encoder: EncoderName) -> EncodedQuery | None:
        """The vector of a text if no run of the model is needed: by the static encoder, or one that is cached.

        A text whose words the static encoder does not know is for the model.
        """
        start = perf_counter()
        used, vector = encoder, self._static.encode(text) if encoder == "static" else None
        if vector is None:
            used, vector = "model", self._vectors.get(text)
        return None if vector is None else EncodedQuery(vector, used, (perf_counter() - start) * 1_000)

    def encode(self, text: str) -> Coroutine[None, None, EncodedQuery]:
        """The vector of a text by the model, for which :meth:`encode_now` returned ``None``.

        One run for all requests with the same text. It starts with the call itself, not when its result is awaited, so
        that a later request uses it. It is cancelled when its last waiter leaves.
        """
        start = perf_counter()
        running = self._running.attach(text, lambda: self._run_model(text))

        async def result() -> EncodedQuery:
            return EncodedQuery(await running, "model", (perf_counter() - start) * 1_000)

        return result()

    async def _run_model(self, text: str) -> Vector:
        vector = await self._model.encode(text)
        self._vectors[text] = vector
        return vector
