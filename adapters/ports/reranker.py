"""Reranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RerankResult:
    """Passages by relevance, best first.

    :param order: indices of the passages, from 0, each once; a passage that is missing was not judged.
    :param scores: by index, on the reranker's own scale, where it returned any.
    :param warning: the part of the reply that had to be ignored; empty if none.
    """

    order: tuple[int, ...]
    scores: Mapping[int, float] = field(default_factory=dict)
    warning: str = ""


class Reranker(Protocol):
    """Orders passages by their relevance to a query."""

    async def rerank(self, query: str, passages: Sequence[str]) -> RerankResult:
        """Order the passages, of which there is at least one.

        :raises AdapterError: and nothing else.
        """
        ...
