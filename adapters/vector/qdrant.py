"""Vectors in Qdrant, for dense retrieval alone: it keeps ids, vectors and labels, no text.

Fusion is ours: Qdrant's counts ranks from 0, hides each leg's own score, and fuses by shard where it is nested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

import anyio.to_thread
import grpc
import msgspec
from qdrant_client import AsyncQdrantClient
from qdrant_client import models as qdrant
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from adapters.document import Record, Scope, facts, fields
from adapters.errors import AdapterError, BadResponse, Rejected, TimedOut, Unavailable, VersionMismatch
from adapters.fingerprint import fingerprint, generation_name
from adapters.labels import compile_filter, labels
from adapters.port import Entry, Key, Query
from adapters.server import VECTOR, Address, Limits, call, chunks, of_status, ranking, short
from fusion import DocId, Ranking

_AT_ONCE = 256
_EF = 128
_GONE = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.NOT_FOUND,  # the collection: it is not built yet
}
_OURS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.OUT_OF_RANGE,
}


def connect(address: Address, api_key: str | None, limits: Limits) -> AsyncQdrantClient:
    """A client of the server at ``address``; call it on the event loop that will use it."""
    secure = address.scheme.endswith("s")
    over_grpc = address.scheme.startswith("qdrant+grpc")
    return AsyncQdrantClient(
        host=address.host,
        port=VECTOR["qdrant+http"] if over_grpc else address.port,
        grpc_port=address.port if over_grpc else VECTOR["qdrant+grpc"],
        prefer_grpc=over_grpc,
        https=secure,
        api_key=api_key,
        # Whole seconds only; the finer limit is set around every call.
        timeout=int(max(limits.read_s, limits.write_s)) + 1,
        pool_size=limits.connections,
        check_compatibility=False,
    )


class QdrantVector:
    """The vector source, and the store behind it, in the collection that the alias ``name`` points to.

    :param client: closed by :meth:`close`.
    :param index_version: identity of encoder and analysers; another one is another collection.
    """

    def __init__(
        self, client: AsyncQdrantClient, name: str, dimension: int, index_version: str, limits: Limits
    ) -> None:
        self._client = client
        self._name = name
        self._collection = generation_name(name, index_version)
        self._dimension = dimension
        self._limits = limits

    async def search(self, query: Query) -> Ranking:
        """The nearest documents by cosine, which is the score. Ties by id."""
        if query.vector is None:
            raise Rejected("the vector source was asked without a vector")
        if len(query.vector) != self._dimension:
            raise Rejected(f"the query's vector has {len(query.vector)} numbers, the index has {self._dimension}")
        async with _call(self._limits.read_s):
            answer = await self._client.query_points(
                self._name,
                query=query.vector.tolist(),
                query_filter=_within(query),
                search_params=qdrant.SearchParams(hnsw_ef=max(_EF, query.depth)),
                limit=query.depth,
                with_payload=["id", "facts"],
                with_vectors=False,
            )
        try:
            held = [(point.score, point.payload) for point in answer.points if point.payload]
            return ranking("vector", ((score, str(payload["id"]), payload.get("facts")) for score, payload in held))
        except (KeyError, TypeError, ValueError) as error:
            raise BadResponse(f"qdrant answered a search with {short(error)}") from error

    async def fetch(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, Record]:
        """See :class:`adapters.port.RecordReader`."""
        found: dict[DocId, Record] = {}
        for batch in chunks(ids, _AT_ONCE):
            names = [fingerprint(scope.tenant, scope.environment, id_) for id_ in batch]
            async with _call(self._limits.write_s):  # who waits for it has a limit of its own
                points = await self._client.retrieve(self._name, names, with_payload=["record"], with_vectors=False)
            try:
                records = [msgspec.json.decode((point.payload or {})["record"], type=Record) for point in points]
            except (KeyError, TypeError, msgspec.DecodeError) as error:
                raise BadResponse(f"qdrant answered for a document with {short(error)}") from error
            found |= {record.document.id: record for record in records}
        return found

    async def built(self) -> bool:
        """See :class:`adapters.port.Store`."""
        async with _call(self._limits.write_s):
            aliases = {each.alias_name: each.collection_name for each in (await self._client.get_aliases()).aliases}
            held = aliases.get(self._name)
            if held == self._collection:
                await self._check_dimension()
        if held not in (None, self._collection):
            raise VersionMismatch(
                f"qdrant's alias {self._name!r} points to {held!r}, the settings ask for {self._collection!r}: "
                "use the settings that built it, or index again under another TRIVIUM_INDEX_NAME"
            )
        return held is not None

    async def prepare(self) -> None:
        """See :class:`adapters.port.Store`. The payload indexes are made before the first point, as they should be."""
        if await self.built():
            return
        async with _call(self._limits.write_s):
            try:
                await self._client.create_collection(
                    self._collection,
                    vectors_config=qdrant.VectorParams(size=self._dimension, distance=qdrant.Distance.COSINE),
                )
            except Exception:
                # Made already: by another worker at this moment, or by one that was ended before it made the alias.
                if not await self._client.collection_exists(self._collection):
                    raise
            await self._client.create_payload_index(
                self._collection,
                "scope",
                qdrant.KeywordIndexParams(type=qdrant.KeywordIndexType.KEYWORD, is_tenant=True),
                wait=True,
            )
            await self._client.create_payload_index(
                self._collection, "labels", qdrant.PayloadSchemaType.KEYWORD, wait=True
            )
            alias = qdrant.CreateAlias(collection_name=self._collection, alias_name=self._name)
            await self._client.update_collection_aliases([qdrant.CreateAliasOperation(create_alias=alias)])

    async def apply(self, version: int, upserts: Sequence[Entry], deletes: Sequence[Key]) -> None:  # noqa: ARG002
        """See :class:`adapters.port.Store`."""
        for batch in chunks(upserts, _AT_ONCE):
            points = await anyio.to_thread.run_sync(_points, batch)
            async with _call(self._limits.write_s):
                await self._client.upsert(self._name, points, wait=True)
        for keys in chunks(deletes, _AT_ONCE):
            chosen = qdrant.PointIdsList(points=[fingerprint(*key) for key in keys])
            async with _call(self._limits.write_s):
                await self._client.delete(self._name, chosen, wait=True)

    async def count(self) -> int:
        """See :class:`adapters.port.Store`."""
        async with _call(self._limits.write_s):
            return (await self._client.count(self._name, exact=True)).count

    async def version(self) -> str:
        """What the server says it is."""
        async with _call(self._limits.read_s):
            return str((await self._client.info()).version)

    async def clock(self) -> float | None:
        """Qdrant tells nobody the time."""
        return None

    async def close(self) -> None:
        """See :class:`adapters.port.Store`."""
        await self._client.close()

    async def _check_dimension(self) -> None:
        vectors = (await self._client.get_collection(self._name)).config.params.vectors
        size = vectors.size if isinstance(vectors, qdrant.VectorParams) else None
        if size != self._dimension:
            raise VersionMismatch(
                f"qdrant's collection {self._collection!r} holds vectors of {size} numbers, "
                f"the encoder makes {self._dimension}"
            )


def _points(entries: Sequence[Entry]) -> list[qdrant.PointStruct]:
    return [
        qdrant.PointStruct(
            id=fingerprint(*entry.record.key),
            vector=entry.vector.tolist(),
            payload={
                "id": entry.record.document.id,
                "scope": fingerprint(entry.record.tenant, entry.record.environment),
                "labels": labels(fields(entry.record)),
                "facts": msgspec.to_builtins(facts(entry.record.document)),
                # As text: nobody filters by what is in it, and Qdrant keeps what it cannot take apart as it is.
                "record": msgspec.json.encode(entry.record).decode(),
            },
        )
        for entry in entries
    ]


def _within(query: Query) -> qdrant.Filter:
    """The filter, and the scope once more by itself: Qdrant keeps the points of one tenant together."""
    scope = fingerprint(query.scope.tenant, query.scope.environment)
    tenant = qdrant.FieldCondition(key="scope", match=qdrant.MatchValue(value=scope))
    return qdrant.Filter(must=[tenant, compile_filter(query.filter, _Conditions())])


class _Conditions:
    """Filters as conditions on the payload's labels."""

    def holds(self, labels: Sequence[str]) -> qdrant.Condition:
        return qdrant.FieldCondition(key="labels", match=qdrant.MatchAny(any=list(labels)))

    def every(self, parts: Sequence[qdrant.Condition]) -> qdrant.Condition:
        return qdrant.Filter(must=list(parts))

    def some(self, parts: Sequence[qdrant.Condition]) -> qdrant.Condition:
        return qdrant.Filter(should=list(parts))

    def no(self, part: qdrant.Condition) -> qdrant.Condition:
        return qdrant.Filter(must_not=[part])


def _call(seconds: float) -> AbstractAsyncContextManager[None]:
    return call("qdrant", seconds, _meant)


def _meant(error: Exception) -> AdapterError | None:
    """Qdrant's errors as ours."""
    told = f"qdrant: {short(error)}"
    match error:
        case grpc.aio.AioRpcError():
            return _of_code(error.code(), f"qdrant: {error.code().name}: {(error.details() or '')[:300]}")
        case UnexpectedResponse():
            return of_status(error.status_code or 0, told)
        case ResourceExhaustedResponse():
            return Unavailable(told)
        case ResponseHandlingException(source=ValueError() as cause):  # an answer that is not what the API says
            return BadResponse(f"qdrant: {short(cause)}")
        case ResponseHandlingException(source=cause):
            return Unavailable(f"qdrant cannot be reached: {short(cause)}")
        case ValueError() | AssertionError():
            # The client asserts that an answer has a result; its local mode raises ValueError for a status.
            return BadResponse(told)
        case _:
            return None


def _of_code(code: grpc.StatusCode, told: str) -> AdapterError:
    """What a gRPC status means."""
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return TimedOut(told)
    if code in _GONE:
        return Unavailable(told)
    return (Rejected if code in _OURS else BadResponse)(told)
