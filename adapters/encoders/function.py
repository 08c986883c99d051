"""A user-supplied encoder: a function from texts to vectors, such as another model in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from traceback import walk_tb
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from adapters.model.batching import batches
from adapters.model.errors import Rejected, TimedOut, Unavailable
from adapters.model.vectors import MAX_DIMENSION, unit
from adapters.ports.daemon_threads import DaemonThreads
from adapters.ports.encoders import EncodedText, Matrix, Vector

_KIND = "kind"
_BATCH = 32
"""Texts in one call: the memory that a model needs grows with their number."""
_MAX_S = 300.0
"""Seconds that a call for documents may take."""
MAX_CALLS = 8
"""Calls for documents, and for queries, that may run at once."""
_NUMBERS = "fiu"
"""Kinds of numpy's types."""


class FunctionEncoder:
    """Calls ``function(texts)``, or ``function(texts, kind=…)`` if it has a parameter of this name, which is
    ``"query"`` or ``"document"``. Threads may call it at the same time.

    Its vectors may have any length; each text has one. The dimension is that of a first call. Calls for documents run
    in threads of their own; a query is encoded in the thread that asks for it.

    :param name: of the function in error messages, and in the identity.
    :raises Unavailable: if the function fails, or runs too often at once.
    :raises TimedOut: if it takes too long.
    :raises Rejected: if what it returns are no vectors.
    """

    encodes_texts = True

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name
        self._threads = DaemonThreads(name, MAX_CALLS)
        try:
            self._takes_kind = _KIND in signature(function).parameters
        except (TypeError, ValueError):  # of a function in C, which has no signature
            self._takes_kind = False
        self.dimension = 0
        self.dimension = self._of_documents(["dimension"]).shape[1]

    @property
    def identity(self) -> str:
        """See :class:`adapters.ports.TextEncoder`. Another model needs another name of the function."""
        return f"{self._name}-{self.dimension}"

    def encode(self, text: str) -> Vector:
        """See :class:`adapters.ports.QueryEncoder`. Takes as long as the function does."""
        vector: Vector = self._vectors([text], self._call([text], "query"))[0]
        return vector

    def encode_texts(self, texts: Sequence[EncodedText]) -> list[Matrix]:
        """See :class:`adapters.ports.TextEncoder`. All that is encoded with a text is on lines around it."""
        whole = ["\n".join(filter(None, (each.beginning, each.before, each.text, each.after))) for each in texts]
        return [vector[np.newaxis] for batch in batches(whole, _BATCH) for vector in self._of_documents(list(batch))]

    def _of_documents(self, texts: list[str]) -> Matrix:
        """:raises TimedOut: if the function takes too long."""
        call = self._threads.submit(self._call, texts, "document")
        try:
            returned = call.result(_MAX_S)
        except TimeoutError:
            raise TimedOut(f"{self._name} did not return within {_MAX_S:g} s") from None
        return self._vectors(texts, returned)

    def _call(self, texts: list[str], kind: Literal["query", "document"]) -> list[npt.NDArray[Any]]:
        options = {_KIND: kind} if self._takes_kind else {}
        try:
            return [np.asarray(each) for each in self._function(texts, **options)]
        except (Exception, SystemExit) as error:
            raise Unavailable(f"{self._name} failed", self._described(error)) from error

    def _described(self, error: BaseException) -> str:
        """The error, once there are documents without its text, which may have theirs."""
        (*_, (frame, line)) = walk_tb(error.__traceback__)
        place = f"{type(error).__name__} in {frame.f_code.co_filename}, line {line}"
        return place if self.dimension else f"{place}: {str(error)[:500]}"

    def _vectors(self, texts: Sequence[str], returned: Sequence[npt.NDArray[Any]]) -> Matrix:
        if len(returned) != len(texts):
            raise Rejected(f"{self._name} returned {len(returned)} vectors for {len(texts)} texts")
        expected = self.dimension or (len(returned[0]) if returned[0].ndim else 0)
        for number, vector in enumerate(returned, start=1):
            if vector.ndim != 1 or vector.dtype.kind not in _NUMBERS:
                shape = "x".join(map(str, vector.shape)) or "no"
                raise Rejected(f"{self._name} returned {shape} values of {vector.dtype}, allowed are lists of numbers")
            if len(vector) != expected or not 1 <= expected <= MAX_DIMENSION:
                allowed = f"{self.dimension} as before" if self.dimension else f"1 to {MAX_DIMENSION}, always as many"
                raise Rejected(f"{self._name} returned vectors of {len(vector)} numbers, allowed are {allowed}")
            if not np.isfinite(vector).all() or not vector.any():
                shown = str(vector.tolist())[:80]
                raise Rejected(f"{self._name} returned {shown} for text {number} of {len(texts)}: no direction")
        return np.stack([unit(vector.tolist()) for vector in returned])
