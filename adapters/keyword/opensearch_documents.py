"""Reads documents from an index in OpenSearch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

import msgspec
from opensearchpy import AsyncOpenSearch

from adapters.keyword.opensearch_bulk import Body
from adapters.keyword.opensearch_client import translate
from adapters.keyword.opensearch_replies import IDENTIFYING_FIELDS, Bucket, IdentifiedRecord, R, check_shards
from adapters.model.batching import batches
from adapters.model.document import Record, Scope, fields
from adapters.model.errors import BadResponse, Unavailable
from adapters.model.filter import Filter, predicate
from adapters.model.index_terms import filter_compiler
from adapters.model.protection import Protection
from adapters.ports.documents import (
    MAX_PAGE_BYTES,
    MAX_PER_POSITION,
    ChunkPosition,
    DocumentPage,
    at_positions,
    position_of,
)
from adapters.servers.fingerprints import fingerprint
from adapters.servers.server import Limits, translated_errors, unreadable
from fusion.columns import Documents
from fusion.values import DocId

_BATCH_PROTECTIONS = 500
_BATCH_FETCHED = 25
"""Documents of one fetch: a response is decoded in one event loop iteration, and each may have a megabyte."""
_MAX_COUNTED_VALUES = 10_000
_MAX_HITS = 10_000
"""Maximum number of hits of one search in OpenSearch's default settings."""


class _Clauses:
    """Compiles filters to clauses over the field of filter terms."""

    def any_term(self, terms: Sequence[str]) -> Body:
        return {"terms": {"filter_terms": list(terms)}}

    def all_of(self, queries: Sequence[Body]) -> Body:
        return {"bool": {"filter": list(queries)}}

    def any_of(self, queries: Sequence[Body]) -> Body:
        return {"bool": {"should": list(queries), "minimum_should_match": 1}}

    def negate(self, query: Body) -> Body:
        return {"bool": {"must_not": [query]}}


CLAUSES = _Clauses()
compiled = filter_compiler(CLAUSES)
"""Compiles a filter in normal form."""


class OpenSearchDocuments:
    """The documents in the index that the alias ``name`` points to: a :class:`adapters.ports.DocumentReader`."""

    def __init__(self, client: AsyncOpenSearch, name: str, limits: Limits) -> None:
        self._client = client
        self._name = name
        self._limits = limits

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[DocId, Record]:
        """See :class:`adapters.ports.DocumentFetcher`."""
        records: dict[DocId, Record] = {}
        for batch in batches(documents.ids, _BATCH_FETCHED):
            records |= {each.doc_id: each for each in await self._stored(scope, batch, "record", Record)}
        return records

    async def protections(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, Protection]:
        """See :class:`adapters.ports.ProtectionReader`."""
        found: dict[DocId, Protection] = {}
        for batch in batches(ids, _BATCH_PROTECTIONS):
            stored = await self._stored(scope, batch, IDENTIFYING_FIELDS, IdentifiedRecord)
            found |= {each.doc_id: each.document.protection for each in stored}
        return found

    async def _stored(self, scope: Scope, ids: Sequence[DocId], fields: str, type_: type[R]) -> list[R]:
        """The fields of the documents that exist."""
        names = [fingerprint(scope.tenant, scope.environment, id_) for id_ in ids]
        async with self._writing():  # callers have time limits of their own
            params = {"_source_includes": fields}
            response = await self._client.mget(index=self._name, body={"ids": names}, params=params)
        try:
            docs = response["docs"]
            if failed := sum("error" in each for each in docs):
                # A shard is unavailable: if its documents counted as absent, any caller could replace them.
                raise Unavailable(f"opensearch could not read {failed} documents")
            if [each["_id"] for each in docs] != names or not all(isinstance(each["found"], bool) for each in docs):
                raise BadResponse("opensearch's response to a fetch does not match the requested documents")
            found = [each["_source"]["record"] for each in docs if each["found"]]
            stored: list[R] = msgspec.convert(found, list[type_])  # type: ignore[valid-type]
        except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
            raise unreadable("opensearch's response to a fetch", error) from error
        requested = {(scope.tenant, scope.environment, id_) for id_ in ids}
        if not all((each.tenant, each.environment, each.doc_id) in requested for each in stored):
            raise BadResponse("opensearch's response to a fetch has documents that were not requested")
        return stored

    async def find(self, condition: Filter, limit: int) -> list[Record]:
        """See :class:`adapters.ports.DocumentFinder`."""
        query = {"bool": {"filter": compiled(condition)}}
        return await self._records(query, limit, self._reading())

    async def chunk_ids(self, positions: Sequence[ChunkPosition], condition: Filter) -> dict[ChunkPosition, str]:
        """See :class:`adapters.ports.DocumentFinder`."""
        records = await self.find(at_positions(positions, condition), MAX_PER_POSITION * len(positions))
        is_passing = predicate(condition)
        passing = (record.document for record in records if is_passing(fields(record)))
        by_id = sorted(passing, key=lambda document: document.id, reverse=True)
        return {position: each.id for each in by_id if (position := position_of(each))}

    async def page(self, condition: Filter, limit: int, start: str | None = None) -> DocumentPage:
        """See :class:`adapters.ports.DocumentFinder`. The order is that of the column ``candidate``."""
        records: list[Record] = []
        size_bytes = 0
        while True:
            wanted = min(limit - len(records), _BATCH_FETCHED)
            found = await self._listed(condition, wanted + 1, start)  # one more shows that there are more
            for record, place in found[:wanted]:
                size_bytes += len(msgspec.json.encode(record))
                if records and size_bytes > MAX_PAGE_BYTES:
                    return DocumentPage(records, start)
                records.append(record)
                start = place
            if len(found) <= wanted:
                return DocumentPage(records, None)
            if len(records) == limit:
                return DocumentPage(records, start)

    async def _listed(self, condition: Filter, count: int, start: str | None) -> list[tuple[Record, str]]:
        """The next documents in the order of ``candidate``, each with the value of that column."""
        body: Body = {
            "query": {"bool": {"filter": compiled(condition)}},
            "size": count,
            "sort": ["candidate"],
            "_source": ["record"],
            "track_total_hits": False,
        }
        if start is not None:
            body["search_after"] = [start]
        async with self._writing():  # callers have time limits of their own
            response = await self._client.search(index=self._name, body=body)
        try:
            check_shards(response)
            hits = response["hits"]["hits"]
            return [(msgspec.convert(hit["_source"]["record"], Record), str(hit["sort"][0])) for hit in hits]
        except (KeyError, IndexError, TypeError, msgspec.ValidationError) as error:
            raise unreadable("opensearch's response to a search for documents", error) from error

    async def sample(self, count: int) -> list[Record]:
        """See :class:`adapters.ports.DocumentSampler`."""
        random_score = {"random_score": {"seed": 0, "field": "_seq_no"}}
        return await self._records({"function_score": random_score}, count, self._writing())

    async def _records(self, query: Body, limit: int, time_limit: AbstractAsyncContextManager[None]) -> list[Record]:
        body = {"query": query, "size": min(limit, _MAX_HITS), "_source": ["record"], "track_total_hits": False}
        async with time_limit:
            response = await self._client.search(index=self._name, body=body)
        try:
            check_shards(response)
            return msgspec.convert([hit["_source"]["record"] for hit in response["hits"]["hits"]], list[Record])
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise unreadable("opensearch's response to a search for documents", error) from error

    async def counts(self, field: str, condition: Filter) -> dict[str, int]:
        """See :class:`adapters.ports.DocumentFinder`. Only the field ``collection`` can be counted here."""
        body = {
            "query": {"bool": {"filter": compiled(condition)}},
            "size": 0,
            "aggs": {"values": {"terms": {"field": field, "size": _MAX_COUNTED_VALUES}}},
        }
        async with self._writing():  # callers have time limits of their own
            response = await self._client.search(index=self._name, body=body)
        try:
            check_shards(response)
            buckets = response["aggregations"]["values"]["buckets"]
            return {bucket.key: bucket.doc_count for bucket in msgspec.convert(buckets, list[Bucket])}
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise unreadable("opensearch's response to a count", error) from error

    def _reading(self) -> AbstractAsyncContextManager[None]:
        return translated_errors("opensearch", self._limits.read_timeout_s, translate)

    def _writing(self) -> AbstractAsyncContextManager[None]:
        return translated_errors("opensearch", self._limits.write_timeout_s, translate)
