"""Keywords in OpenSearch: BM25 (Lucene's, k1 = 1.2, b = 0.75); and the documents themselves, in their ``_source``.

Both documents and queries are stemmed there, by an analyser of the same steps as the embedded engine's. What counts in
a query is decided here, by that engine's own code: quotes, stop words, how many words. Nothing of it is ever parsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import anyio.to_thread
import msgspec
from opensearchpy import AsyncOpenSearch
from opensearchpy import exceptions as raised

from adapters.document import Record, Scope, facts, fields
from adapters.errors import AdapterError, BadResponse, Rejected, TimedOut, Unavailable, VersionMismatch
from adapters.filter import Filter
from adapters.fingerprint import fingerprint, generation_name
from adapters.keyword import analysis
from adapters.keyword.opensearch_index import MAPPINGS, SETTINGS
from adapters.labels import compile_filter, labels
from adapters.port import Entry, Key, Query
from adapters.server import Address, Limits, call, chunks, of_status, ranking, short
from fusion import DocId, Ranking

_AT_ONCE = 500
_DOCUMENTS_FAULT = frozenset({400, 413})
"""Statuses that a document cannot come back from. All others may be the server's, or its index's, and pass."""
_COLLECTIONS = 10_000
_WINDOW = 10_000
"""Hits that OpenSearch gives at most, unless it is set otherwise."""

Body: TypeAlias = dict[str, Any]

_BULK = {
    "refresh": "wait_for",  # returns when searches see it; the index refreshes often enough that this is no long wait
    "require_alias": "true",  # or a bulk to an index that is not there yet would make one, by its own ideas
}


def connect(address: Address, limits: Limits, ca_file: str | None = None) -> AsyncOpenSearch:
    """A client of the server at ``address``; call it on the event loop that will use it."""
    secure = address.scheme.endswith("s")
    return AsyncOpenSearch(
        hosts=[{"host": address.host, "port": address.port}],
        http_auth=(address.user, address.password) if address.user else None,
        use_ssl=secure,
        verify_certs=secure,
        ca_certs=ca_file,
        timeout=max(limits.read_s, limits.write_s) + 1,  # the finer limit is set around every call
        max_retries=0,
        maxsize=limits.connections,
    )


class OpenSearchKeyword:
    """The keyword source, the store behind it, and the reader of documents, in the index that ``name`` points to.

    :param client: closed by :meth:`close`.
    :param index_version: identity of encoder and analysers; another one is another index.
    """

    def __init__(self, client: AsyncOpenSearch, name: str, index_version: str, limits: Limits) -> None:
        self._client = client
        self._name = name
        self._index = generation_name(name, index_version)
        self._limits = limits

    async def search(self, query: Query) -> Ranking:
        """The best documents by BM25, which is the score (0 and up). Ties by id."""
        asked = analysis.terms(query.text, stems=False, expansions=query.expansions)
        if not asked.words and not asked.phrases:
            return Ranking("keyword", (), ())
        body = {
            "query": {"bool": {"must": _text(asked), "filter": compile_filter(query.filter, _Clauses())}},
            "size": query.depth,
            "_source": ["id", "facts"],
            "track_total_hits": False,
            "timeout": f"{max(1, int(self._limits.read_s * 1_000))}ms",
        }
        async with _call(self._limits.read_s):
            answer = await self._client.search(index=self._name, body=body, params={"request_cache": "false"})
        try:
            if answer["timed_out"]:
                raise TimedOut(f"opensearch did not finish a search within {self._limits.read_s:g} s")
            hits = [(float(hit["_score"]), hit["_source"]) for hit in answer["hits"]["hits"]]
            return ranking("keyword", ((score, str(held["id"]), held.get("facts")) for score, held in hits))
        except (KeyError, TypeError, ValueError) as error:
            raise BadResponse(f"opensearch answered a search with {short(error)}") from error

    async def fetch(self, scope: Scope, ids: Sequence[DocId]) -> Mapping[DocId, Record]:
        """See :class:`adapters.port.DocumentReader`."""
        found: dict[DocId, Record] = {}
        for batch in chunks(ids, _AT_ONCE):
            names = [fingerprint(scope.tenant, scope.environment, id_) for id_ in batch]
            async with _call(self._limits.write_s):  # who waits for it has a limit of its own
                answer = await self._client.mget(
                    index=self._name, body={"ids": names}, params={"_source_includes": "record"}
                )
            try:
                held = [each["_source"]["record"] for each in answer["docs"] if each.get("found")]
                records = msgspec.convert(held, list[Record])
            except (KeyError, TypeError, msgspec.ValidationError) as error:
                raise BadResponse(f"opensearch answered for a document with {short(error)}") from error
            found |= {record.document.id: record for record in records}
        return found

    async def find(self, wanted: Filter, limit: int) -> list[Record]:
        """See :class:`adapters.port.DocumentReader`."""
        return await self._records({"bool": {"filter": compile_filter(wanted, _Clauses())}}, limit, self._limits.read_s)

    async def sample(self, count: int) -> list[Record]:
        """See :class:`adapters.port.DocumentReader`."""
        chance = {"random_score": {"seed": 0, "field": "_seq_no"}}
        return await self._records({"function_score": chance}, count, self._limits.write_s)

    async def _records(self, query: Body, count: int, seconds: float) -> list[Record]:
        body = {"query": query, "size": min(count, _WINDOW), "_source": ["record"], "track_total_hits": False}
        async with _call(seconds):
            answer = await self._client.search(index=self._name, body=body)
        try:
            return msgspec.convert([hit["_source"]["record"] for hit in answer["hits"]["hits"]], list[Record])
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise BadResponse(f"opensearch answered for documents with {short(error)}") from error

    async def counts(self, field: str, wanted: Filter) -> dict[str, int]:
        """See :class:`adapters.port.DocumentReader`; of the fields, ``collection`` alone can be counted here."""
        body = {
            "query": {"bool": {"filter": compile_filter(wanted, _Clauses())}},
            "size": 0,
            "aggs": {"values": {"terms": {"field": field, "size": _COLLECTIONS}}},
        }
        async with _call(self._limits.read_s):
            answer = await self._client.search(index=self._name, body=body)
        try:
            buckets = answer["aggregations"]["values"]["buckets"]
            return {str(bucket["key"]): int(bucket["doc_count"]) for bucket in buckets}
        except (KeyError, TypeError, ValueError) as error:
            raise BadResponse(f"opensearch answered a count with {short(error)}") from error

    async def built(self) -> bool:
        """See :class:`adapters.port.Store`."""
        async with _call(self._limits.write_s):
            held = await self._held()
        if held not in ([], [self._index]):
            raise VersionMismatch(
                f"opensearch's alias {self._name!r} points to {', '.join(held)}, the settings ask for "
                f"{self._index!r}: use the settings that built it, or index again under another TRIVIUM_INDEX_NAME"
            )
        return bool(held)

    async def prepare(self) -> None:
        """See :class:`adapters.port.Store`. By an index template, so that an index made later is the same."""
        if await self.built():
            return
        async with _call(self._limits.write_s):
            template = {
                "index_patterns": [self._index, f"{self._index}-*"],
                "template": {"settings": SETTINGS, "mappings": MAPPINGS},
                "priority": 200,
            }
            await self._client.indices.put_index_template(name=self._index, body=template)
            try:
                await self._client.indices.create(index=self._index, body={"aliases": {self._name: {}}})
            except raised.RequestError as error:
                if error.error != "resource_already_exists_exception":
                    raise
                await self._client.indices.put_alias(index=self._index, name=self._name)

    async def apply(self, version: int, upserts: Sequence[Entry], deletes: Sequence[Key]) -> None:
        """See :class:`adapters.port.Store`. A newer version that is there already stays."""
        both: list[Entry | Key] = [*upserts, *deletes]
        for batch in chunks(both, _AT_ONCE):
            lines = await anyio.to_thread.run_sync(_lines, version, batch)
            async with _call(self._limits.write_s):
                answer = await self._client.bulk(index=self._name, body=lines, params=_BULK)
            _check(answer)

    async def count(self) -> int:
        """See :class:`adapters.port.Store`."""
        async with _call(self._limits.write_s):
            return int((await self._client.count(index=self._name))["count"])

    async def version(self) -> str:
        """What the server says it is."""
        async with _call(self._limits.read_s):
            return str((await self._client.info())["version"]["number"])

    async def clock(self) -> float | None:
        """The time of one node."""
        async with _call(self._limits.read_s):
            nodes = (await self._client.nodes.stats(metric="os"))["nodes"].values()
        return float(next(iter(nodes))["timestamp"]) / 1_000

    async def close(self) -> None:
        """See :class:`adapters.port.Store`."""
        await self._client.close()

    async def _held(self) -> list[str]:
        """The indexes that the alias points to."""
        try:
            return sorted(await self._client.indices.get_alias(name=self._name))
        except raised.NotFoundError:
            return []


def _text(asked: analysis.Terms) -> Body:
    """What is asked as words, which the server stems as it stemmed the documents."""
    should: list[Body] = [{"match": {"passage": " ".join(asked.words)}}]
    should += [_phrase(each, analysis.EXPANSION) for each in asked.expansions]
    phrases = [_phrase(each) for each in asked.phrases]
    if asked.demanded:
        return {"bool": {"should": should, "must": phrases}}
    return {"bool": {"should": should + phrases, "minimum_should_match": 1}}


def _phrase(words: Sequence[str], weight: float = 1.0) -> Body:
    return {"match_phrase": {"passage": {"query": " ".join(words), "boost": weight}}}


def _lines(version: int, batch: Sequence[Entry | Key]) -> list[Body]:
    """The lines of a bulk request: entries are indexed, keys are deleted."""
    lines: list[Body] = []
    for each in batch:
        if isinstance(each, Entry):
            lines += [{"index": _names(each.record.key, version)}, _source(each.record)]
        else:
            lines.append({"delete": _names(each, version)})
    return lines


def _names(key: Key, version: int) -> Body:
    return {"_id": fingerprint(*key), "version": version, "version_type": "external"}


def _source(record: Record) -> Body:
    return {
        "id": record.document.id,
        "collection": record.document.collection,
        "labels": labels(fields(record)),
        "passage": analysis.values(record.document),
        "facts": msgspec.to_builtins(facts(record.document)),
        "record": msgspec.to_builtins(record),
    }


def _check(answer: Any) -> None:
    """A bulk answers 200 whatever became of its lines. What counts as done is a newer version that stays, too."""
    try:
        outcomes = [next(iter(each.items())) for each in answer["items"]]
        bad = [outcome for action, outcome in outcomes if not _done(action, outcome)]
        faults = [outcome for outcome in bad if outcome["status"] in _DOCUMENTS_FAULT]
    except (KeyError, TypeError, AttributeError, StopIteration) as error:
        raise BadResponse(f"opensearch answered a bulk with {short(error)}") from error
    if bad:
        first = str(bad[0].get("error", bad[0]))[:300]
        told = f"opensearch did not take {len(bad)} of {len(outcomes)} documents, first: {first}"
        raise (Rejected if len(faults) == len(bad) else Unavailable)(told)


def _done(action: str, outcome: Body) -> bool:
    status = outcome["status"]
    deleted_nothing = action == "delete" and status == 404 and outcome.get("result") == "not_found"
    return 200 <= status < 300 or status == 409 or deleted_nothing


class _Clauses:
    """Filters as clauses over the field ``labels``."""

    def holds(self, labels: Sequence[str]) -> Body:
        return {"terms": {"labels": list(labels)}}

    def every(self, parts: Sequence[Body]) -> Body:
        return {"bool": {"filter": list(parts)}}

    def some(self, parts: Sequence[Body]) -> Body:
        return {"bool": {"should": list(parts), "minimum_should_match": 1}}

    def no(self, part: Body) -> Body:
        return {"bool": {"must_not": [part]}}


def _call(seconds: float) -> AbstractAsyncContextManager[None]:
    return call("opensearch", seconds, _meant)


def _meant(error: Exception) -> AdapterError | None:
    """OpenSearch's errors as ours."""
    told = f"opensearch: {short(error)}"
    match error:
        case raised.ConnectionTimeout():
            return TimedOut(told)
        case raised.ConnectionError():
            return Unavailable(f"opensearch cannot be reached: {short(error)}")
        case raised.TransportError(status_code=int(status)):
            return of_status(status, told)
        case raised.TransportError():
            return Unavailable(told)
        case raised.SerializationError() | ValueError() | KeyError() | TypeError():
            return BadResponse(told)
        case _:
            return None
