"""What a product implements. Its module is imported by the Python of the product's own environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import numpy as np

DEPTH, LIMIT, K = 100, 10, 60
"""Documents from each source, hits, and the constant of reciprocal rank fusion, where a product lets one choose."""


class Doc(TypedDict):
    """A document, and what is returned of a hit."""

    id: str
    title: str
    text: str


class Product:
    """A product with its index in a folder. ``index`` runs in one process, ``open`` and ``search`` in another.

    :param source: the BEIR folder, with the graph files if there are any.
    """

    def __init__(self, folder: Path, source: Path) -> None:
        self.folder, self.source = folder, source

    def index(self, documents: list[Doc], vectors: np.ndarray) -> None:
        """Write the index into the folder."""
        raise NotImplementedError

    def open(self) -> None:
        """Open the index for searching."""
        raise NotImplementedError

    def search(self, text: str, vector: np.ndarray) -> list[Doc]:
        """The best ten documents of a hybrid search, with their texts."""
        raise NotImplementedError

    def server_pid(self) -> int | None:
        """The process of the product's server, whose CPU and memory count, too."""
        return None

    def close(self) -> None:
        """Stop what ``open`` or ``index`` has started."""


def body(document: Doc) -> str:
    """The text to index, for a product without a separate field for titles."""
    return f"{document['title']}\n{document['text']}".strip()


def best_by_rrf(rankings: list[list[Any]]) -> list[Any]:
    """The ten best by reciprocal rank fusion in a dictionary."""
    sums: dict[Any, float] = {}
    for ranking in rankings:
        for rank, each in enumerate(ranking, start=1):
            sums[each] = sums.get(each, 0.0) + 1 / (K + rank)
    return sorted(sums, key=lambda each: -sums[each])[:LIMIT]
