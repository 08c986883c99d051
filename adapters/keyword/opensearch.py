"""The keyword source on an OpenSearch server: BM25 (Lucene's, k1 = 1.2, b = 0.75). It also returns documents.

Documents and queries are analysed here, as the embedded engine's are: OpenSearch gets terms, and parses no user text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio.to_thread
import msgspec
from cachetools import TTLCache
from opensearchpy import AsyncOpenSearch
from opensearchpy import exceptions as driver

from adapters.keyword import analysis
from adapters.keyword.bm25_explanation import Explained
from adapters.keyword.opensearch_bulk import BULK_PARAMETERS, Body, bulk_lines, check_bulk
from adapters.keyword.opensearch_documents import compiled
from adapters.keyword.opensearch_explanation import lucene_term_scores
from adapters.keyword.opensearch_index import MAPPINGS, Candidate, differences, index_settings
from adapters.keyword.opensearch_listing import OpenSearchListing
from adapters.keyword.opensearch_replies import check_shards, search_responses
from adapters.model.batching import batches, sized_batches
from adapters.model.errors import BUILD_ADVICE, TimedOut, VersionConflict, VersionMismatch
from adapters.model.filter import Filter
from adapters.model.sources import KEYWORD
from adapters.model.term_score import TermScore
from adapters.ports.replica import Key, VectorRecord
from adapters.ports.retriever import SourceQuery
from adapters.ports.server import Difference
from adapters.servers.batcher import Batcher
from adapters.servers.fingerprints import build_name, fingerprint, shown_build
from adapters.servers.server import UNDIVIDED, Limits, Partitioning, server_ranking, unreadable
from adapters.text.languages import ENGLISH
from fusion.columns import Ranking
from fusion.values import DocId

_BATCH_DOCUMENTS = 500
_MAX_REQUEST_BYTES = 33_554_432
"""Of a write. By default OpenSearch accepts 100 MiB, and advises far less."""
_SEARCH_PARAMETERS = {
    # BM25 from the statistics of all shards, so that their number changes no score. With one shard it costs nothing.
    "search_type": "dfs_query_then_fetch",
    # The best score is null without hits, and makes every response contain ``hits``.
    "filter_path": "responses.status,responses.error.type,responses.timed_out,responses._shards.failed,"
    "responses.hits.max_score,responses.hits.hits._score,responses.hits.hits.fields",
}
_LANGUAGES_S = 30.0
"""Seconds after which the languages of documents are counted again: another process may have added one."""
_MAX_LANGUAGES = 1_024
"""Number of callers whose documents' languages are known."""
_decode_candidates = msgspec.json.Decoder(list[Candidate]).decode


class OpenSearchKeyword(OpenSearchListing):
    """The keyword source in the index that the alias ``name`` points to.

    It is a :class:`adapters.ports.ServerSource` and a :class:`adapters.ports.DocumentReader`.

    :param client: closed by :meth:`close`.
    :param build_id: identity of encoder and analysers; each has an index of its own.
    :param partitioning: of a new index.
    """

    is_warming = False

    def __init__(
        self,
        client: AsyncOpenSearch,
        name: str,
        build_id: str,
        limits: Limits,
        partitioning: Partitioning = UNDIVIDED,
    ) -> None:
        super().__init__(client, name, limits)
        self.partitioning = partitioning
        self._index = build_name(name, build_id)
        self._languages: TTLCache[Filter, tuple[str, ...]] = TTLCache(_MAX_LANGUAGES, _LANGUAGES_S)
        self._searches: Batcher[tuple[Body, Body], Any] = Batcher("opensearch", self._search)

    async def search(self, query: SourceQuery) -> Ranking:
        """The best documents by BM25, which is the score (0 and up). Ties by id."""
        parsed = analysis.parse_query(query.text, query.expansions, await self._languages_of(query.access))
        if parsed.is_empty:
            return Ranking.empty(KEYWORD.name)
        body = {
            "query": {"bool": {"must": _text_query(parsed), "filter": compiled(query.filter)}},
            "size": query.depth,
            "_source": False,
            "stored_fields": "_none_",
            "docvalue_fields": ["candidate"],
            "track_total_hits": False,
            "timeout": f"{max(1, int(self._limits.read_timeout_s * 1_000))}ms",
        }
        # Equal queries search the same copies of the shards: their statistics differ until deletions are merged.
        header = {"preference": fingerprint(query.text), "request_cache": False}
        response = await self._searches.send((header, body))
        try:
            if response["timed_out"]:
                raise TimedOut(f"opensearch timed out after {self._limits.read_timeout_s:g} s")
            check_shards(response)
            hits = response["hits"].get("hits", ())  # left out, as is every empty value
            scores = [float(hit["_score"]) for hit in hits]
            columns = ",".join([hit["fields"]["candidate"][0] for hit in hits])
            candidates = _decode_candidates(f"[{columns}]")
            return server_ranking(
                KEYWORD.name, [(score, each.id, each.fields) for score, each in zip(scores, candidates, strict=True)]
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise unreadable("opensearch's response to a search", error) from error

    async def term_scores(self, query: SourceQuery, ids: Sequence[DocId]) -> Mapping[DocId, Sequence[TermScore]]:
        """See :class:`adapters.ports.TermScorer`."""
        parsed = analysis.parse_query(query.text, query.expansions, await self._languages_of(query.access))
        if parsed.is_empty or not ids:
            return {}
        names = {fingerprint(query.scope.tenant, query.scope.environment, id_): id_ for id_ in ids}
        body = {
            "query": {"bool": {"must": _text_query(parsed), "filter": {"ids": {"values": list(names)}}}},
            "size": len(names),
            "_source": False,
            "explain": True,
            "track_total_hits": False,
        }
        # As in a search: from the statistics of all shards, in the same copies of them.
        params = {"search_type": _SEARCH_PARAMETERS["search_type"], "preference": fingerprint(query.text)}
        async with self._writing():  # callers have time limits of their own
            response = await self._client.search(index=self._name, body=body, params=params)
        try:
            check_shards(response)
            found = {names[hit["_id"]]: hit["_explanation"] for hit in response["hits"]["hits"]}
            return {id_: lucene_term_scores(msgspec.convert(each, Explained)) for id_, each in found.items()}
        except (KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
            raise unreadable("opensearch's explanation of scores", error) from error

    async def _languages_of(self, access: Filter) -> tuple[str, ...]:
        """The languages of the documents that a caller may see, English first."""
        known = self._languages.get(access)
        if known is None:
            async with self._reading():  # part of a search; a count alone has the limit of a write
                found = await self.counts("language", access)
            known = self._languages[access] = tuple(dict.fromkeys((ENGLISH, *sorted(found))))
        return known

    async def _search(self, searches: Sequence[tuple[Body, Body]]) -> list[Any]:
        """The response to each search, or its error."""
        lines = [line for search in searches for line in search]
        async with self._reading():
            response = await self._client.msearch(index=self._name, body=lines, params=_SEARCH_PARAMETERS)
        return search_responses(response)

    async def check(self) -> bool:
        """See :class:`adapters.ports.IndexAdmin`."""
        async with self._writing():
            indexes = await self._aliased_indexes()
        if indexes not in ([], [self._index]):
            found = ", ".join(map(shown_build, indexes))
            raise VersionMismatch(
                f"opensearch's alias {self._name!r} points to {found}, the settings require {self._index!r}: "
                + BUILD_ADVICE
            )
        return bool(indexes)

    async def create(self) -> None:
        """See :class:`adapters.ports.IndexAdmin`. Uses an index template, so that later indexes are the same."""
        if await self.check():
            return
        async with self._writing():
            template = {
                "index_patterns": [self._index, f"{self._index}-*"],
                "template": {"settings": index_settings(self.partitioning), "mappings": MAPPINGS},
                "priority": 200,
            }
            await self._client.indices.put_index_template(name=self._index, body=template)
            try:
                await self._client.indices.create(index=self._index, body={"aliases": {self._name: {}}})
            except driver.RequestError as error:
                if error.error != "resource_already_exists_exception":
                    raise
                await self._client.indices.put_alias(index=self._index, name=self._name)

    async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None:
        """See :class:`adapters.ports.Replica`."""
        writes: list[VectorRecord | Key] = [*upserts, *deletes]
        newer: set[int] = set()
        for batch in batches(writes, _BATCH_DOCUMENTS):
            lines = await anyio.to_thread.run_sync(bulk_lines, sequence, batch)
            pairs = list(zip(batch, lines, strict=True))
            for request in sized_batches(pairs, lambda pair: len(pair[1]), _MAX_REQUEST_BYTES):
                written, operations = zip(*request, strict=True)
                body = b"".join(operations).decode()  # the client takes bytes for a list
                async with self._writing():
                    response = await self._client.bulk(index=self._name, body=body, params=BULK_PARAMETERS)
                newer |= check_bulk(response, sequence, written)
        self._languages.clear()
        if newer:
            raise VersionConflict("opensearch", newer)

    async def count(self) -> int:
        """See :class:`adapters.ports.Replica`."""
        async with self._writing():
            return int((await self._client.count(index=self._name))["count"])

    async def release(self) -> str:
        """See :class:`adapters.ports.ServerProbe`."""
        async with self._reading():
            return str((await self._client.info())["version"]["number"])

    async def clock(self) -> float | None:
        """The time of one node; see :class:`adapters.ports.ServerProbe`."""
        async with self._reading():
            response = await self._client.nodes.stats(metric="os")
        try:
            (timestamp, *_) = [node["timestamp"] for node in response["nodes"].values()]
            return float(timestamp) / 1_000
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise unreadable("opensearch's response to a request for the time", error) from error

    async def differences(self) -> Sequence[Difference]:
        """See :class:`adapters.ports.ServerSource`."""
        async with self._reading():
            settings = await self._client.indices.get_settings(index=self._index)
        try:
            return list(differences(self._index, settings[self._index]["settings"]["index"], self.partitioning))
        except (KeyError, TypeError, ValueError) as error:
            raise unreadable("opensearch's response to a request for settings", error) from error

    async def drop(self) -> None:
        """See :class:`adapters.ports.ServerSource`."""
        async with self._writing():
            await self._client.indices.delete(index=self._index, params={"ignore_unavailable": "true"})
            with suppress(driver.NotFoundError):
                await self._client.indices.delete_index_template(name=self._index)

    async def close(self) -> None:
        """See :class:`adapters.ports.ServerSource`."""
        await self._client.close()

    async def _aliased_indexes(self) -> list[str]:
        """The indexes that the alias points to, sorted."""
        try:
            return sorted(await self._client.indices.get_alias(name=self._name))
        except driver.NotFoundError:
            return []


def _text_query(parsed: analysis.ParsedQuery) -> Body:
    """A parsed query as a query of terms."""
    should: list[Body] = [{"match": {"words": " ".join(parsed.words)}}] if parsed.words else []
    should += [_best_of(compound) for compound in parsed.compounds]
    should += [_phrase(code) for code in parsed.codes]
    should += [_all_words(each) for each in parsed.expansions]
    quoted = [_phrase(each) for each in parsed.phrases] + [{"match": {"words": form}} for form in parsed.forms]
    if parsed.is_required:
        return {"bool": {"should": should, "must": quoted}}
    return {"bool": {"should": should + quoted, "minimum_should_match": 1}}


def _best_of(terms: Sequence[str]) -> Body:
    return {"dis_max": {"queries": [{"match": {"words": term}} for term in terms], "boost": analysis.COMPOUND_WEIGHT}}


def _phrase(terms: Sequence[str]) -> Body:
    return {"match_phrase": {"exact": " ".join(terms)}}


def _all_words(words: Sequence[str]) -> Body:
    return {"match": {"words": {"query": " ".join(words), "operator": "and", "boost": analysis.EXPANSION_WEIGHT}}}
