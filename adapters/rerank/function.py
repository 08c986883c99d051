"""A reranker of the user's: a function from a query and passages to scores, such as a cross-encoder in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import anyio.to_thread

from adapters.errors import AdapterError, Rejected
from adapters.port import Reranking
from adapters.rerank.reply import sound


class FunctionReranker:
    """Calls ``function(query, passages)`` in a thread; the higher a score, the better the passage.

    :param name: what it is called in errors.
    """

    def __init__(self, function: Callable[[str, list[str]], Any], name: str) -> None:
        self._function = function
        self._name = name

    async def rerank(self, query: str, passages: Sequence[str]) -> Reranking:
        """See :class:`adapters.port.Reranker`. Who gives up does not stop it: a thread runs to its end."""
        try:
            told = await anyio.to_thread.run_sync(self._function, query, list(passages), abandon_on_cancel=True)
            scores = [float(score) for score in told]
        except AdapterError:
            raise
        except Exception as error:
            raise Rejected(f"{self._name} failed: {error}") from error
        if len(scores) != len(passages) or not all(map(isfinite, scores)):
            raise Rejected(f"{self._name} gave {len(scores)} scores for {len(passages)} passages, or one is no number")
        best = sorted(range(len(scores)), key=lambda number: -scores[number])
        return sound([(number, scores[number]) for number in best], len(passages))
