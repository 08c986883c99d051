"""LanceDB: one table with vectors and a full-text index; its hybrid query with its default reranker, RRF.

There is no vector index, because its documentation advises one from 100,000 rows on.
"""

from __future__ import annotations

import lancedb
import numpy as np

from benchmarks.peers.products.product import LIMIT, Doc, body
from benchmarks.peers.products.product import Product as Base

_TABLE = "documents"


class Product(Base):
    def index(self, documents: list[Doc], vectors: np.ndarray) -> None:
        rows = [{**each, "body": body(each), "vector": vector} for each, vector in zip(documents, vectors, strict=True)]
        table = lancedb.connect(str(self.folder)).create_table(_TABLE, rows)
        table.create_fts_index("body")
        table.optimize()

    def open(self) -> None:
        self.table = lancedb.connect(str(self.folder)).open_table(_TABLE)

    def search(self, text: str, vector: np.ndarray) -> list[Doc]:
        query = self.table.search(query_type="hybrid").vector(vector).text(text).distance_type("cosine")
        return query.select(["id", "title", "text"]).limit(LIMIT).to_list()
