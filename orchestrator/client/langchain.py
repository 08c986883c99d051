"""A retriever for LangChain (extra ``langchain``)."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, PrivateAttr, SecretStr

from orchestrator.client.asynchronous import AsyncClient
from orchestrator.client.frameworks import client_of, provenance
from orchestrator.client.synchronous import Client
from orchestrator.schema.search import SearchResponse


class TriviumRetriever(BaseRetriever):
    """Searches a running service. ``k``, ``filter`` and other fields of a request may also be given to ``invoke``.

    :param url: of the service.
    :param key: the API key.
    :param k: maximum number of documents.
    :param filter: as in ``POST /v1/search``.
    :param request: other fields of the request, such as ``{"collections": ["notes"], "min_confidence": 0.5}``.
    :param timeout_s: time limit of a search, retries included.
    """

    url: str
    key: SecretStr | None = None
    k: int = 10
    filter: dict[str, Any] | None = None
    request: dict[str, Any] = Field(default_factory=dict)
    timeout_s: float = 10.0
    _client: Client = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """See pydantic."""
        super().model_post_init(context)
        self._client = client_of(self, self.url, self._key, self.timeout_s)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **fields: Any
    ) -> list[Document]:
        del run_manager  # there are no calls of other components
        return _documents(self._client.search(query, **self._fields(fields)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **fields: Any
    ) -> list[Document]:
        del run_manager
        # Of this call: a client belongs to one event loop, and a retriever may be called on several.
        async with AsyncClient(self.url, self._key, timeout_s=self.timeout_s) as client:
            return _documents(await client.search(query, **self._fields(fields)))

    @property
    def _key(self) -> str | None:
        return self.key.get_secret_value() if self.key else None

    def _fields(self, given: dict[str, Any]) -> dict[str, Any]:
        limit = given.pop("k", self.k)
        return {"limit": limit, "filter": self.filter, **self.request, **given}


def _documents(response: SearchResponse) -> list[Document]:
    return [Document(id=hit.id, page_content=hit.text, metadata=provenance(hit)) for hit in response.hits]
