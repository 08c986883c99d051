"""A retriever for Haystack (extra ``haystack``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import Secret

from orchestrator.client.asynchronous import AsyncClient
from orchestrator.client.frameworks import client_of, provenance
from orchestrator.schema.search import SearchResponse

_BOUNDS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}


@component
class TriviumRetriever:
    """Searches a running service.

    :param url: of the service.
    :param api_key: such as ``Secret.from_env_var("SEARCH_KEY")``.
    :param top_k: maximum number of documents.
    :param filters: as in ``POST /v1/search``, or those of Haystack.
    :param request: other fields of the request, such as ``{"collections": ["notes"], "min_confidence": 0.5}``.
    :param timeout_s: time limit of a search, retries included.
    """

    def __init__(
        self,
        url: str,
        api_key: Secret | None = None,
        top_k: int = 10,
        filters: dict[str, Any] | None = None,
        request: dict[str, Any] | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        self.url = url
        self.api_key = api_key
        self.top_k = top_k
        self.filters = filters
        self.request = request or {}
        self.timeout_s = timeout_s
        self._client = client_of(self, url, self._key, timeout_s)

    def to_dict(self) -> dict[str, Any]:
        """The component as Haystack stores it; a key that is no variable of the environment cannot be stored."""
        stored: dict[str, Any] = default_to_dict(
            self,
            url=self.url,
            api_key=self.api_key.to_dict() if self.api_key else None,
            top_k=self.top_k,
            filters=self.filters,
            request=self.request,
            timeout_s=self.timeout_s,
        )
        return stored

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TriviumRetriever:
        """The component that was stored."""
        parameters = data.get("init_parameters", {})
        if parameters.get("api_key") is not None:
            parameters["api_key"] = Secret.from_dict(parameters["api_key"])
        restored: TriviumRetriever = default_from_dict(cls, data)
        return restored

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None) -> dict[str, Any]:
        """Search.

        :param filters: instead of those of the component.
        :param top_k: likewise.
        """
        return _documents(self._client.search(query, **self._fields(filters, top_k)))

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        """See :meth:`run`."""
        # Of this call: a client belongs to one event loop, and a component may be called on several.
        async with AsyncClient(self.url, self._key, timeout_s=self.timeout_s) as client:
            return _documents(await client.search(query, **self._fields(filters, top_k)))

    @property
    def _key(self) -> str | None:
        return self.api_key.resolve_value() if self.api_key else None

    def _fields(self, filters: dict[str, Any] | None, top_k: int | None) -> dict[str, Any]:
        chosen = self.filters if filters is None else filters
        limit = self.top_k if top_k is None else top_k
        return {"limit": limit, "filter": None if chosen is None else as_filter(chosen), **self.request}


def as_filter(condition: Mapping[str, Any]) -> Mapping[str, Any]:
    """A filter of Haystack as one of the API; one of the API stays as it is.

    :raises ValueError: if Haystack has no such operator.
    """
    match condition:
        case {"operator": "AND" | "OR" as operator, "conditions": conditions}:
            return {"op": operator.lower(), "filters": [as_filter(each) for each in conditions]}
        case {"operator": "NOT", "conditions": conditions}:  # of all of them together
            return {"op": "not", "filter": as_filter({"operator": "AND", "conditions": conditions})}
        case {"field": field, "operator": operator, "value": value}:
            return _comparison(
                f"metadata.{field.removeprefix('meta.')}" if "meta." in field else field, operator, value
            )
        case {"operator": operator}:
            raise ValueError(f"the operator {operator!r} is none of a filter, allowed are AND, OR, NOT")
        case _:
            return condition


def _comparison(field: str, operator: str, value: Any) -> Mapping[str, Any]:
    match operator:
        case "==":
            return {"op": "eq", "field": field, "value": value}
        case "in":
            return {"op": "in", "field": field, "values": value}
        case "!=" | "not in":
            return {"op": "not", "filter": _comparison(field, "==" if operator == "!=" else "in", value)}
        case ">" | ">=" | "<" | "<=":
            return {"op": "range", "field": field, _BOUNDS[operator]: value}
        case _:
            allowed = "==, !=, >, >=, <, <=, in, not in"
            raise ValueError(f"the operator {operator!r} of {field!r} is none of a filter, allowed are {allowed}")


def _documents(response: SearchResponse) -> dict[str, Any]:
    return {
        "documents": [
            Document(id=hit.id, content=hit.text, meta=provenance(hit), score=hit.score) for hit in response.hits
        ]
    }
