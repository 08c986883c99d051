"""A user-supplied encoder: a function from texts to vectors, such as another model in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, Literal

import numpy as np

from adapters.model.batching import batches
from adapters.model.errors import Rejected, Unavailable
from adapters.model.vectors import MAX_DIMENSION, unit
from adapters.ports.encoders import EncodedText, Matrix, Vector

_KIND = "kind"
_BATCH = 32
"""Texts in one call: the memory that a model needs grows with their number."""


class FunctionEncoder:
    """Calls ``function(texts)``, or ``function(texts, kind=…)`` if it has a parameter of this name, which is
    ``"query"`` or ``"document"``. Threads may call it at the same time.

    Its vectors may have any length; each text has one. The dimension is that of a first call.

    :param name: of the function in error messages, and in the identity.
    :raises Unavailable: if the function fails.
    :raises Rejected: if what it returns are no vectors.
    """

    encodes_texts = True

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name
        try:
            self._takes_kind = _KIND in signature(function).parameters
        except (TypeError, ValueError):  # of a function in C, which has no signature
            self._takes_kind = False
        self.dimension = 0
        self.dimension = len(self._called(["dimension"], "document")[0])

    @property
    def identity(self) -> str:
        """See :class:`adapters.ports.TextEncoder`. Another model needs another name of the function."""
        return f"{self._name}-{self.dimension}"

    def encode(self, text: str) -> Vector:
        """See :class:`adapters.ports.QueryEncoder`. Takes as long as the function does."""
        vector: Vector = self._called([text], "query")[0]
        return vector

    def encode_texts(self, texts: Sequence[EncodedText]) -> list[Matrix]:
        """See :class:`adapters.ports.TextEncoder`. All that is encoded with a text is on lines around it."""
        whole = ["\n".join(filter(None, (each.beginning, each.before, each.text, each.after))) for each in texts]
        matrices = [self._called(list(batch), "document") for batch in batches(whole, _BATCH)]
        return [vector[np.newaxis] for matrix in matrices for vector in matrix]

    def _called(self, texts: list[str], kind: Literal["query", "document"]) -> Matrix:
        options = {_KIND: kind} if self._takes_kind else {}
        try:
            returned = self._function(texts, **options)
        except Exception as error:
            raise Unavailable(f"{self._name} failed", type(error).__name__) from error
        try:
            matrix = np.asarray([unit(vector) for vector in returned], np.float32)
        except (TypeError, ValueError) as error:
            raise Rejected(f"{self._name} returned no vectors: {error}") from error
        if matrix.ndim != 2:
            raise Rejected(f"{self._name} returned no vectors: numbers")
        if len(matrix) != len(texts):
            raise Rejected(f"{self._name} returned {len(matrix)} vectors for {len(texts)} texts")
        dimension = matrix.shape[1]
        if not 1 <= dimension <= MAX_DIMENSION or self.dimension not in {0, dimension}:
            allowed = f"{self.dimension} as before" if self.dimension else f"1 to {MAX_DIMENSION}"
            raise Rejected(f"{self._name} returned vectors of {dimension} numbers, allowed are {allowed}")
        return matrix
