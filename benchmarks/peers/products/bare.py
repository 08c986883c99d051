"""FAISS and Tantivy called directly, with reciprocal rank fusion in a dictionary: what a program would write itself."""

from __future__ import annotations

import json
import re

import faiss
import numpy as np
import tantivy

from benchmarks.peers.products.product import DEPTH, Doc, best_by_rrf
from benchmarks.peers.products.product import Product as Base

_WORD = re.compile(r"\w+")


class Product(Base):
    def index(self, documents: list[Doc], vectors: np.ndarray) -> None:
        graph = faiss.IndexHNSWFlat(vectors.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = 100
        graph.add(vectors)
        faiss.write_index(graph, str(self.folder / "vectors"))
        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("row", stored=True)
        schema.add_text_field("title", tokenizer_name="en_stem")
        schema.add_text_field("text", tokenizer_name="en_stem")
        (self.folder / "words").mkdir()
        writer = tantivy.Index(schema.build(), path=str(self.folder / "words")).writer(num_threads=1)
        for row, document in enumerate(documents):
            writer.add_document(tantivy.Document(row=row, title=document["title"], text=document["text"]))
        writer.commit()
        writer.wait_merging_threads()
        (self.folder / "documents").write_text(json.dumps(documents))

    def open(self) -> None:
        faiss.omp_set_num_threads(1)
        self.graph = faiss.read_index(str(self.folder / "vectors"))
        self.graph.hnsw.efSearch = DEPTH
        self.words = tantivy.Index.open(str(self.folder / "words"))
        self.searcher = self.words.searcher()
        self.documents: list[Doc] = json.loads((self.folder / "documents").read_text())

    def search(self, text: str, vector: np.ndarray) -> list[Doc]:
        nearest = self.graph.search(vector[None], DEPTH)[1][0].tolist()
        query = self.words.parse_query(" ".join(_WORD.findall(text)), ["title", "text"], {"title": 3.0})
        found = self.searcher.search(query, DEPTH).hits
        rows = [self.searcher.doc(address)["row"][0] for _, address in found]
        return [self.documents[row] for row in best_by_rrf([nearest, rows])]
