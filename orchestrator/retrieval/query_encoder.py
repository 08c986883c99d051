"""Encoding of queries: by the model or by the static encoder, as the plan says. Load never decides it.

On the event loop, as the searches of the embedded engine are (docs/decisions/0003-inline-on-the-event-loop.md): a
thread of its own cost more than it gained, and queries waited for one another in front of it. Requests that may wait
have their turns (:attr:`QueryEncoders.turns`), so that many of them do not stop the loop together.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from cachetools import LRUCache

from adapters import QueryEncoder
from adapters.ports.encoders import Vector
from cache import hash_key
from orchestrator.planning.fair_queue import FairLock
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
        self._vectors: LRUCache[bytes, Vector] = LRUCache(max_vectors)
        self.turns = FairLock()

    def encode(self, text: str, encoder: EncoderName, tenant: str) -> EncodedQuery:
        """The vector of a text. A text whose words the static encoder does not know is for the model.

        :param tenant: has cached vectors of its own: how long this takes does not tell what other tenants searched for.
        """
        start = perf_counter()
        used, vector = encoder, self._static.encode(text) if encoder == "static" else None
        if vector is None:
            key = hash_key(tenant, text)  # the text itself may have ten times the size of the vector
            used, vector = "model", self._vectors.get(key)
            if vector is None:
                vector = self._vectors[key] = self._model.encode(text)
        return EncodedQuery(vector, used, (perf_counter() - start) * 1_000)
