"""A user-supplied reranker: a function from a query and passages to scores, such as a cross-encoder in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from adapters.model.errors import Rejected
from adapters.ports.daemon_threads import DaemonThreads
from adapters.ports.reranker import RerankResult
from adapters.rerank.reply import validated

_MAX_CONCURRENT = 8
"""Maximum number of running calls, cancelled ones included."""


class FunctionReranker:
    """Calls ``function(query, passages)`` in a thread. A higher score means a better passage.

    :param name: of the function in error messages.
    """

    def __init__(self, function: Callable[[str, list[str]], Any], name: str) -> None:
        self._function = function
        self._name = name
        self._threads = DaemonThreads(name, _MAX_CONCURRENT)

    async def rerank(self, query: str, passages: Sequence[str]) -> RerankResult:
        """See :class:`adapters.ports.Reranker`. A cancelled call continues in its thread to its end."""
        call = self._threads.submit(self._function, query, list(passages))
        try:
            scores = [float(score) for score in await asyncio.wrap_future(call)]
        except Exception as error:
            raise Rejected(f"{self._name} failed", type(error).__name__) from error
        if len(scores) != len(passages) or not all(map(isfinite, scores)):
            raise Rejected(
                f"{self._name} returned {len(scores)} scores for {len(passages)} passages, or one that is not a number"
            )
        best = sorted(range(len(scores)), key=lambda index: -scores[index])
        return validated([(index, scores[index]) for index in best], len(passages))
