"""The vector source on a Qdrant server. It is used for dense retrieval only.

Fusion is done by :mod:`fusion`: Qdrant's own counts ranks from 0, hides the score of each source, and fuses within each
shard where it is nested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import cast

import anyio.to_thread
import msgspec
from qdrant_client import AsyncQdrantClient
from qdrant_client import models as qdrant

from adapters.model.batching import batches, sized_batches
from adapters.model.document import Record, Scope, fields, rank_fields
from adapters.model.errors import BUILD_ADVICE, BadResponse, Rejected, Unavailable, VersionMismatch
from adapters.model.index_terms import filter_compiler, filter_terms
from adapters.model.sources import VECTOR
from adapters.ports.replica import Key, VectorRecord
from adapters.ports.retriever import SourceQuery
from adapters.ports.server import Difference
from adapters.servers.batcher import Batcher
from adapters.servers.fingerprints import build_name, fingerprint, shown_build
from adapters.servers.server import Limits, server_ranking, translated_errors, unreadable
from adapters.vector.qdrant_collection import (
    IN_MEMORY,
    PAYLOAD_INDEXES,
    SEARCH_QUANTIZATION,
    CollectionLayout,
    creation,
    differences,
    missing_indexes,
)
from adapters.vector.qdrant_connection import translate
from adapters.vector.width import search_width
from fusion.columns import Documents, Ranking
from fusion.values import DocId, DocumentFields

_BATCH_DOCUMENTS = 256
_BATCH_FETCHED = 25
"""Documents of one fetch: a response is decoded in one event loop iteration, and each may have a megabyte."""
_MAX_REQUEST_BYTES = 16_777_216
"""Of a write. By default Qdrant accepts 32 MiB over REST, and closes the connection at more."""
_FILTERED_WIDTH = 2
"""How much wider a search with a filter is."""
_BYTES_PER_NUMBER = 24
"""Of a vector, in JSON."""

_decode_record = msgspec.json.Decoder(Record).decode


class QdrantVector:
    """The vector source in the collection that the alias ``name`` points to.

    It is an :class:`adapters.ports.ServerSource` and an :class:`adapters.ports.DocumentFetcher`.

    :param client: closed by :meth:`close`.
    :param dimension: length of a vector.
    :param build_id: identity of encoder and analysers; each has a collection of its own.
    :param layout: of a new collection.
    """

    is_warming = False

    def __init__(
        self,
        client: AsyncQdrantClient,
        name: str,
        dimension: int,
        build_id: str,
        limits: Limits,
        layout: CollectionLayout = IN_MEMORY,
    ) -> None:
        self._client = client
        self.layout = layout
        self._name = name
        self._collection = build_name(name, build_id)
        self._dimension = dimension
        self._limits = limits
        self._searches: Batcher[qdrant.QueryRequest, qdrant.QueryResponse] = Batcher("qdrant", self._search)

    async def search(self, query: SourceQuery) -> Ranking:
        """The nearest documents by cosine; the score is the cosine, in [-1, 1]. Ties by id.

        :raises Rejected: if the query has no vector, or one of another length than the documents'.
        """
        if query.vector is None:
            raise Rejected("the vector source needs a vector, and the query has none")
        if len(query.vector) != self._dimension:
            raise Rejected(f"the query's vector has {len(query.vector)} numbers, the index has {self._dimension}")
        response = await self._searches.send(
            qdrant.QueryRequest(
                query=[query.vector.tolist()],
                filter=_tenant_filter(query),
                params=_search_params(query),
                limit=query.depth,
                with_payload=["id", "rank_fields"],
                with_vector=False,
            )
        )
        try:
            hits = [(point.score, point.payload) for point in response.points if point.payload]
            return server_ranking(
                VECTOR.name,
                [
                    (score, payload["id"], msgspec.convert(payload.get("rank_fields"), DocumentFields | None))
                    for score, payload in hits
                ],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise unreadable("qdrant's response to a search", error) from error

    async def _search(self, searches: Sequence[qdrant.QueryRequest]) -> list[qdrant.QueryResponse]:
        async with self._reading():
            return await self._client.query_batch_points(self._name, searches)

    async def fetch(self, scope: Scope, documents: Documents) -> Mapping[DocId, Record]:
        """See :class:`adapters.ports.DocumentFetcher`."""
        records: dict[DocId, Record] = {}
        for batch in batches(documents.ids, _BATCH_FETCHED):
            ids = [fingerprint(scope.tenant, scope.environment, id_) for id_ in batch]
            async with self._writing():  # callers have time limits of their own
                points = await self._client.retrieve(self._name, ids, with_payload=["record"], with_vectors=False)
            try:
                found = [_decode_record((point.payload or {})["record"]) for point in points]
            except (KeyError, TypeError, msgspec.DecodeError) as error:
                raise unreadable("qdrant's response to a fetch", error) from error
            requested = {(scope.tenant, scope.environment, id_) for id_ in batch}
            if not all(each.key in requested for each in found):
                raise BadResponse("qdrant's response to a fetch has documents that were not requested")
            records |= {each.doc_id: each for each in found}
        return records

    async def check(self) -> bool:
        """See :class:`adapters.ports.IndexAdmin`."""
        async with self._writing():
            aliases = {each.alias_name: each.collection_name for each in (await self._client.get_aliases()).aliases}
            collection = aliases.get(self._name)
            if collection == self._collection:
                await self._check_dimension()
        if collection not in (None, self._collection):
            raise VersionMismatch(
                f"qdrant's alias {self._name!r} points to {shown_build(collection)}, the settings require "
                f"{self._collection!r}: " + BUILD_ADVICE
            )
        return collection is not None

    async def create(self) -> None:
        """See :class:`adapters.ports.IndexAdmin`. Indexes of payload fields that were dropped are made again."""
        exists = await self.check()
        async with self._writing():
            if not exists:
                try:
                    await self._client.create_collection(self._collection, **creation(self._dimension, self.layout))
                except Exception:
                    # Another worker may create it at the same time, or may have ended before it created the alias.
                    if not await self._client.collection_exists(self._collection):
                        raise
            found = (await self._client.get_collection(self._collection)).payload_schema
            for field, schema in PAYLOAD_INDEXES.items():  # before the first point, as Qdrant advises
                if field not in found:
                    await self._client.create_payload_index(self._collection, field, schema, wait=True)
            if not exists:
                alias = qdrant.CreateAlias(collection_name=self._collection, alias_name=self._name)
                await self._client.update_collection_aliases([qdrant.CreateAliasOperation(create_alias=alias)])

    async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
        """See :class:`adapters.ports.Replica`. Qdrant does not store the sequence number."""
        del sequence
        for batch in batches(upserts, _BATCH_DOCUMENTS):
            points = await anyio.to_thread.run_sync(_points, batch)
            for request in sized_batches(points, _size_bytes, _MAX_REQUEST_BYTES):
                async with self._writing():
                    _check_completed(await self._client.upsert(self._name, request, wait=True))
        for keys in batches(deletes, _BATCH_DOCUMENTS):
            deleted = qdrant.PointIdsList(points=[fingerprint(*key) for key in keys])
            async with self._writing():
                _check_completed(await self._client.delete(self._name, deleted, wait=True))

    async def count(self) -> int:
        """See :class:`adapters.ports.Replica`."""
        async with self._writing():
            return (await self._client.count(self._name, exact=True)).count

    async def release(self) -> str:
        """See :class:`adapters.ports.ServerProbe`."""
        async with self._reading():
            await self._client.collection_exists(self._collection)  # needs the API key, which the release does not
            return str((await self._client.info()).version)

    async def clock(self) -> float | None:
        """Returns ``None``: Qdrant does not report its time."""
        return None

    async def differences(self) -> Sequence[Difference]:
        """See :class:`adapters.ports.ServerSource`."""
        async with self._writing():
            found = await self._client.get_collection(self._name)
        return [
            *missing_indexes(found.payload_schema),
            *differences(self._collection, found.config, self.layout),
        ]

    async def drop(self) -> None:
        """See :class:`adapters.ports.ServerSource`. The alias is deleted with the collection."""
        async with self._writing():
            await self._client.delete_collection(self._collection)

    async def close(self) -> None:
        """See :class:`adapters.ports.ServerSource`."""
        await self._client.close()

    async def _check_dimension(self) -> None:
        vectors = (await self._client.get_collection(self._name)).config.params.vectors
        size = vectors.size if isinstance(vectors, qdrant.VectorParams) else None
        if size != self._dimension:
            raise VersionMismatch(
                f"qdrant's collection {self._collection!r} has vectors of {size} numbers, "
                f"the encoder's have {self._dimension}"
            )

    def _reading(self) -> AbstractAsyncContextManager[None]:
        return translated_errors("qdrant", self._limits.read_timeout_s, translate)

    def _writing(self) -> AbstractAsyncContextManager[None]:
        return translated_errors("qdrant", self._limits.write_timeout_s, translate)


def _check_completed(result: qdrant.UpdateResult) -> None:
    """Check that an update is applied: one that is only received may be lost.

    :raises Unavailable: if it is not applied.
    """
    if result.status != qdrant.UpdateStatus.COMPLETED:
        raise Unavailable("qdrant has not applied a write yet")


def _points(batch: Sequence[VectorRecord]) -> list[qdrant.PointStruct]:
    return [
        qdrant.PointStruct(
            id=fingerprint(*each.record.key),
            vector=each.vectors.tolist(),
            payload={
                "id": each.record.doc_id,
                "scope": fingerprint(each.record.tenant, each.record.environment),
                "filter_terms": filter_terms(fields(each.record)),
                "rank_fields": msgspec.to_builtins(rank_fields(each.record.document)),
                # As text: no filter tests what is in it, and Qdrant stores text unchanged.
                "record": msgspec.json.encode(each.record).decode(),
            },
        )
        for each in batch
    ]


def _size_bytes(point: qdrant.PointStruct) -> int:
    """An upper bound of the size of a point in JSON. The record is JSON in JSON, so each of its quotes is escaped."""
    numbers = sum(map(len, cast("list[list[float]]", point.vector)))
    payload = point.payload or {}
    terms = sum(map(len, payload["filter_terms"])) + 3 * len(payload["filter_terms"])
    return _BYTES_PER_NUMBER * numbers + 2 * (len(payload["record"].encode()) + terms)


def _search_params(query: SourceQuery) -> qdrant.SearchParams:
    """With a filter, a search sees only documents that pass it, and few of these may be neighbours: then ACORN also
    looks at the neighbours of others (Patel et al., 2024). Measured: docs/decisions/0037-filters-in-qdrant.md."""
    is_filtered = query.filter != query.access
    return qdrant.SearchParams(
        hnsw_ef=search_width(query.depth) * (_FILTERED_WIDTH if is_filtered else 1),
        acorn=qdrant.AcornSearchParams(enable=True, max_selectivity=1.0),
        quantization=SEARCH_QUANTIZATION,
    )


def _tenant_filter(query: SourceQuery) -> qdrant.Filter:
    """The filter of a query, and its scope once more as a condition of its own: Qdrant groups points by that field."""
    scope = fingerprint(query.scope.tenant, query.scope.environment)
    tenant = qdrant.FieldCondition(key="scope", match=qdrant.MatchValue(value=scope))
    return qdrant.Filter(must=[tenant, _compile(query.filter)])


class _Conditions:
    """Compiles filters to conditions on the payload field of filter terms."""

    def any_term(self, terms: Sequence[str]) -> qdrant.Condition:
        return qdrant.FieldCondition(key="filter_terms", match=qdrant.MatchAny(any=list(terms)))

    def all_of(self, queries: Sequence[qdrant.Condition]) -> qdrant.Condition:
        return qdrant.Filter(must=list(queries))

    def any_of(self, queries: Sequence[qdrant.Condition]) -> qdrant.Condition:
        return qdrant.Filter(should=list(queries))

    def negate(self, query: qdrant.Condition) -> qdrant.Condition:
        return qdrant.Filter(must_not=[query])


_compile = filter_compiler(_Conditions())
