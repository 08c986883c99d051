"""A reranker of the user's: a function from a query and passages to scores, such as a cross-encoder in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from threading import Semaphore
from typing import Any

import anyio.to_thread

from adapters.errors import Rejected, Unavailable
from adapters.port import Judgement
from adapters.rerank.reply import sound

_AT_ONCE = 8
"""Calls under way, those that nobody waits for any more included."""


class FunctionReranker:
    """Calls ``function(query, passages)`` in a thread; the higher a score, the better the passage.

    :param name: what it is called in errors.
    """

    def __init__(self, function: Callable[[str, list[str]], Any], name: str) -> None:
        self._function = function
        self._name = name
        self._free = Semaphore(_AT_ONCE)

    async def rerank(self, query: str, passages: Sequence[str]) -> Judgement:
        """See :class:`adapters.port.Reranker`. Who gives up does not stop it: a thread runs to its end."""
        if not self._free.acquire(blocking=False):
            raise Unavailable(f"{self._name} is busy with {_AT_ONCE} others")
        try:
            told = await anyio.to_thread.run_sync(self._call, query, list(passages), abandon_on_cancel=True)
            scores = [float(score) for score in told]
        except Exception as error:
            raise Rejected(f"{self._name} failed: {error}") from error
        if len(scores) != len(passages) or not all(map(isfinite, scores)):
            raise Rejected(f"{self._name} gave {len(scores)} scores for {len(passages)} passages, or one is no number")
        best = sorted(range(len(scores)), key=lambda number: -scores[number])
        return sound([(number, scores[number]) for number in best], len(passages))

    def _call(self, query: str, passages: list[str]) -> Any:
        try:
            return self._function(query, passages)
        finally:
            self._free.release()
