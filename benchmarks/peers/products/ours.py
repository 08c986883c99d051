"""This service, embedded, with default settings: vectors, keywords, and the graph of the data set if it has one.

Documents get the vectors that all products get. A query brings its vector, too, unless the model is measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from adapters.encoders.minilm import MiniLM
from adapters.ports.encoders import EncodedText
from benchmarks.beir_folder import index_folder
from benchmarks.peers.products.product import LIMIT, Doc
from benchmarks.peers.products.product import Product as Base
from orchestrator import SearchRequest, open_service
from orchestrator.http.interpreter import tuned_for_serving
from orchestrator.settings import load

_TIMEOUT_MS = 60_000


class Product(Base):
    def _settings(self) -> object:
        return load(data_dir=self.folder, source_timeout_ms=_TIMEOUT_MS)

    def index(self, documents: list[Doc], vectors: np.ndarray) -> None:
        known = {
            EncodedText(each["text"], each["title"]): vector[np.newaxis]
            for each, vector in zip(documents, vectors, strict=True)
        }
        encode = MiniLM.encode_texts

        def given(model: MiniLM, texts: Sequence[EncodedText]) -> list[np.ndarray]:
            missing = [each for each in dict.fromkeys(texts) if each not in known]
            if missing:
                known.update(zip(missing, encode(model, missing), strict=True))
            return [known[each] for each in texts]

        MiniLM.encode_texts = given  # type: ignore[method-assign]

        async def run() -> None:
            async with open_service(self._settings()) as service:
                await index_folder(service, self.source, is_divided=False)  # the others have one
                await service.maintenance.optimize(lambda _: None)

        asyncio.run(run())

    def open(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.context = open_service(self._settings())
        self.service = self.loop.run_until_complete(self.context.__aenter__())
        self.tuned = tuned_for_serving()
        self.tuned.__enter__()

    def search(self, text: str, vector: np.ndarray) -> list[Doc]:
        return self._search(text, tuple(vector.tolist()))

    def _search(self, text: str, vector: tuple[float, ...] | None) -> list[Doc]:
        request = SearchRequest(
            query=text, vector=vector, mode="hybrid", limit=LIMIT, timeout_ms=_TIMEOUT_MS, cache="bypass"
        )
        found = self.service.search.search(request, self.service.anonymous, "peers")
        response = self.loop.run_until_complete(found)
        return [Doc(id=hit.id, title=hit.title, text=hit.text) for hit in response.hits]

    def close(self) -> None:
        if hasattr(self, "context"):
            self.loop.run_until_complete(self.context.__aexit__(None, None, None))
