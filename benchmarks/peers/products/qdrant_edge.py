"""Qdrant Edge: Qdrant's engine in this process. Vectors and its BM25 as sparse vectors, fused by its own RRF."""

from __future__ import annotations

import numpy as np
from qdrant_edge import (
    Bm25,
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    Fusion,
    Modifier,
    Point,
    Prefetch,
    Query,
    QueryRequest,
    UpdateOperation,
)

from benchmarks.peers.products.product import DEPTH, LIMIT, Doc, K, body
from benchmarks.peers.products.product import Product as Base

_BATCH = 500


class Product(Base):
    def index(self, documents: list[Doc], vectors: np.ndarray) -> None:
        config = EdgeConfig(
            vectors={"dense": EdgeVectorParams(size=vectors.shape[1], distance=Distance.Cosine)},
            sparse_vectors={"words": EdgeSparseVectorParams(modifier=Modifier.Idf)},
        )
        shard, bm25 = EdgeShard.create(str(self.folder / "shard"), config), Bm25()
        for start in range(0, len(documents), _BATCH):
            batch = enumerate(documents[start : start + _BATCH], start)
            points = [
                Point(row, {"dense": vectors[row].tolist(), "words": bm25.embed_document(body(each))}, dict(each))
                for row, each in batch
            ]
            shard.update(UpdateOperation.upsert_points(points))
        shard.optimize()
        shard.flush()
        shard.close()

    def open(self) -> None:
        self.shard, self.bm25 = EdgeShard.load(str(self.folder / "shard")), Bm25()

    def search(self, text: str, vector: np.ndarray) -> list[Doc]:
        sources = (
            Query.Nearest(vector.tolist(), using="dense"),
            Query.Nearest(self.bm25.embed_query(text), using="words"),
        )
        prefetches = [Prefetch(limit=DEPTH, query=query) for query in sources]
        request = QueryRequest(limit=LIMIT, query=Fusion.Rrf(k=K), prefetches=prefetches, with_payload=True)
        return [point.payload for point in self.shard.query(request)]

    def close(self) -> None:
        if hasattr(self, "shard"):
            self.shard.close()
