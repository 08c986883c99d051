"""A retriever for LlamaIndex (extra ``llama-index``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from orchestrator.client.asynchronous import AsyncClient
from orchestrator.client.frameworks import client_of, provenance
from orchestrator.schema.search import SearchResponse


class TriviumRetriever(BaseRetriever):
    """Searches a running service.

    :param url: of the service.
    :param key: the API key.
    :param similarity_top_k: maximum number of nodes.
    :param filter: as in ``POST /v1/search``.
    :param request: other fields of the request, such as ``{"collections": ["notes"], "min_confidence": 0.5}``.
    :param timeout_s: time limit of a search, retries included.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        similarity_top_k: int = 10,
        filter: Mapping[str, Any] | None = None,  # as in the API
        request: Mapping[str, Any] | None = None,
        timeout_s: float = 10.0,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self._url, self._key, self._timeout_s = url, key, timeout_s
        self._fields = {"limit": similarity_top_k, "filter": filter, **(request or {})}
        self._client = client_of(self, url, key, timeout_s)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._client.search(query_bundle.query_str, **self._fields))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        # Of this call: a client belongs to one event loop, and a retriever may be called on several.
        async with AsyncClient(self._url, self._key, timeout_s=self._timeout_s) as client:
            return _nodes(await client.search(query_bundle.query_str, **self._fields))


def _nodes(response: SearchResponse) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(id_=hit.id, text=hit.text, metadata=provenance(hit)), score=hit.score)
        for hit in response.hits
    ]
