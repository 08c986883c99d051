"""txtai: ``hybrid=True``, FAISS and its own BM25, texts in SQLite. It computes no vectors here: they are given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from txtai import Embeddings

from benchmarks.peers.products.product import LIMIT, Doc, body
from benchmarks.peers.products.product import Product as Base

_SQL = "select id, title, text from txtai where similar(:query)"


class Product(Base):
    def _embeddings(self) -> Embeddings:
        self.vectors: dict[str, np.ndarray] = {}
        return Embeddings(hybrid=True, content=True, method="external", transform=self._given())

    def _given(self) -> Callable[[list[str]], np.ndarray]:
        return lambda texts: np.stack([self.vectors[text] for text in texts])

    def index(self, documents: list[Doc], vectors: np.ndarray) -> None:
        embeddings = self._embeddings()
        self.vectors = {body(each): vector for each, vector in zip(documents, vectors, strict=True)}
        rows = ((each["id"], {"text": body(each), "title": each["title"]}, None) for each in documents)
        embeddings.index(rows)
        embeddings.save(str(self.folder / "index"))

    def open(self) -> None:
        self.embeddings = self._embeddings()
        self.embeddings.load(str(self.folder / "index"), config={"transform": self._given()})

    def search(self, text: str, vector: np.ndarray) -> list[Doc]:
        self.vectors = {text: vector}
        return self.embeddings.search(_SQL, LIMIT, parameters={"query": text})

    def close(self) -> None:
        if hasattr(self, "embeddings"):
            self.embeddings.close()
