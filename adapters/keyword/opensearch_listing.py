"""Lists and counts the documents of an index in OpenSearch, by its column ``values``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Any, TypeVar

import msgspec

from adapters.keyword.opensearch_bulk import Body
from adapters.keyword.opensearch_documents import CLAUSES, OpenSearchDocuments, compiled
from adapters.keyword.opensearch_replies import Bucket, DocumentCount, check_shards
from adapters.model.document import Scope
from adapters.model.facet_ranges import counted, ranges_of
from adapters.model.facets import Facet, FacetValue
from adapters.model.filter import Exists, Filter, Not, Range, seconds
from adapters.model.index_terms import column_name, is_short, term_value, value_term
from adapters.ports.listing import MAX_LISTED_HITS, Listing, SortKey
from adapters.servers.fingerprints import fingerprint
from adapters.servers.server import unreadable
from fusion.columns import Documents
from fusion.values import DocId

_MAX_COUNTED = 10_000
"""Values that each shard counts: up to so many different ones all counts are exact."""
_MIN_VALUES = 1_000
"""Values that are read at once for an order: documents may have many."""
_SPECIAL = re.compile(r"[^A-Za-z0-9_\0\u0080-\U0010ffff]")
_SHORT = "(b.|t([^\0].*)?)"
"""Truth values and texts, as a pattern of Lucene; a NUL begins the hash of a long text."""

T = TypeVar("T")


class _Values(msgspec.Struct, frozen=True):
    buckets: list[Bucket]
    sum_other_doc_count: DocumentCount
    doc_count_error_upper_bound: int


class _Counted(msgspec.Struct, frozen=True):
    doc_count: DocumentCount


class _Ranges(msgspec.Struct, frozen=True):
    buckets: list[_Counted]


class _Columns(msgspec.Struct, frozen=True):
    identity: tuple[DocId]
    values: tuple[str, ...] = ()


class _Hit(msgspec.Struct, frozen=True):
    fields: _Columns


class OpenSearchListing(OpenSearchDocuments):
    """The documents in an index: :class:`adapters.ports.SearchedDocuments`."""

    async def ordered(self, condition: Filter, sort: SortKey | None, count: int) -> Listing:
        """See :class:`adapters.ports.listing.DocumentLister`."""
        passing: Body = compiled(condition)
        with _understood():
            if sort is None:
                hits, total = await self._hits([passing], count)
                return _listing(hits, total)
            hits, total = await self._hits([passing], 0)
            remaining = [passing, compiled(Exists(sort.field))]
            for wanted in (count * 4**power for power in itertools.count()):
                # A document with several values is in several buckets: of ever more values the documents are read.
                size = min(max(wanted, _MIN_VALUES), MAX_LISTED_HITS)
                order = _terms(sort.field, "[bnt].*", size, order={"_key": "desc" if sort.descending else "asc"})
                found = await self._counted(remaining, {"values": order}, _Values)
                buckets = _of_field(sort.field, found["values"]).buckets
                whole, part = _up_to(min(wanted, MAX_LISTED_HITS), buckets)
                if whole:
                    among = _between(sort, whole[0], whole[-1])
                    hits += _by_value((await self._hits([*remaining, among], MAX_LISTED_HITS, sort))[0], sort)
                    remaining.append(CLAUSES.negate(among))
                if part and len(hits) < count:
                    among = _between(sort, part, part)
                    hits += (await self._hits([*remaining, among], count - len(hits)))[0]
                    remaining.append(CLAUSES.negate(among))
                if len(hits) >= count or len(whole) + (part is not None) == len(buckets) < size:
                    break  # there are no other values
            if len(hits) < count:
                hits += (await self._hits([passing, compiled(Not(Exists(sort.field)))], count - len(hits)))[0]
            return _listing(hits[:count], total)

    async def facets(
        self, scope: Scope, sizes: Mapping[str, int], condition: Filter, within: Documents | None = None
    ) -> dict[str, Facet]:
        """See :class:`adapters.ports.listing.DocumentLister`."""
        query: list[Body] = [compiled(condition)]
        if within is not None:
            names = [fingerprint(scope.tenant, scope.environment, id_) for id_ in within.ids]
            query.append({"ids": {"values": names}})
        requested = {}
        for field, size in sizes.items():
            requested[f"values {field}"] = _terms(field, _SHORT, size, shard_size=_MAX_COUNTED)
            requested[f"low {field}"] = _terms(field, "n.*", 1, order={"_key": "asc"})
            requested[f"high {field}"] = _terms(field, "n.*", 1, order={"_key": "desc"})
        with _understood():
            found = await self._counted(query, requested, _Values)
            ranges = {
                field: ranges_of(field, _number(field, low), _number(field, found[f"high {field}"]), size)
                for field, size in sizes.items()
                if (low := found[f"low {field}"]).buckets
            }
            in_ranges = {}
            if ranges:
                requested = {
                    field: {"filters": {"filters": [_within(each) for each in of_field]}}
                    for field, of_field in ranges.items()
                }
                in_ranges = await self._counted(query, requested, _Ranges)
            return {
                field: _facet(
                    _of_field(field, found[f"values {field}"]), size, ranges.get(field, ()), in_ranges.get(field)
                )
                for field, size in sizes.items()
            }

    async def _hits(self, query: Sequence[Body], count: int, sort: SortKey | None = None) -> tuple[list[_Hit], int]:
        """The first documents that match all of a query, by id; and how many match.

        :param sort: the hits have their values.
        """
        body = {
            "query": {"bool": {"filter": query}},
            "size": count,
            "sort": ["identity"],
            "_source": False,
            "docvalue_fields": ["identity", "values"] if sort else ["identity"],
            "track_total_hits": True,
        }
        found = (await self._searched(body))["hits"]
        return msgspec.convert(found["hits"], list[_Hit]), msgspec.convert(found["total"]["value"], DocumentCount)

    async def _counted(self, query: Sequence[Body], requested: Mapping[str, Body], type_: type[T]) -> dict[str, T]:
        """The aggregations of the documents that match all of a query."""
        numbered = {f"{number}": body for number, body in enumerate(requested.values())}
        body = {"query": {"bool": {"filter": query}}, "size": 0, "aggs": numbered, "track_total_hits": False}
        found = (await self._searched(body))["aggregations"]
        return {name: msgspec.convert(found[number], type_) for name, number in zip(requested, numbered, strict=True)}

    async def _searched(self, body: Body) -> Any:
        async with self._writing():  # callers have time limits of their own
            response = await self._client.search(index=self._name, body=body)
        check_shards(response)
        return response


@contextmanager
def _understood() -> Iterator[None]:
    """Errors of a response that is no response to the request are errors of the server."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise unreadable("opensearch's response to a listing", error) from error


def _terms(field: str, pattern: str, size: int, **options: object) -> Body:
    """Counts the terms of a field that match a pattern of Lucene."""
    include = _SPECIAL.sub(r"\\\g<0>", f"{column_name(field)}\0") + pattern
    return {"terms": {"field": "values", "include": include, "size": size, **options}}


def _between(sort: SortKey, first: str, last: str) -> Body:
    """The documents with a term between two, which are in the order of a list."""
    low, high = (last, first) if sort.descending else (first, last)
    return {"range": {"values": {"gte": low, "lte": high}}}


def _within(bounds: Range) -> Body:
    """The documents with a number in a range of a facet."""
    field = column_name(bounds.field)
    low = value_term(field, seconds(bounds.gte or 0.0))
    high = f"{field}\0o" if bounds.lt is None else value_term(field, seconds(bounds.lt))
    return {"range": {"values": {"gte": low, "lt": high}}}


def _up_to(count: int, buckets: Sequence[Bucket]) -> tuple[list[str], str | None]:
    """The first terms that ``count`` documents have at most; and the next one if there are more documents."""
    terms: list[str] = []
    documents = 0
    for bucket in buckets:
        documents += bucket.doc_count
        if documents > count:
            return terms, bucket.key
        terms.append(bucket.key)
    return terms, None


def _by_value(hits: Sequence[_Hit], sort: SortKey) -> list[_Hit]:
    """The hits by their first value in an order, equal ones as before."""
    first = max if sort.descending else min
    prefix = f"{column_name(sort.field)}\0"

    def key(hit: _Hit) -> str:
        return first(term for term in hit.fields.values if term.startswith(prefix))

    return sorted(hits, key=key, reverse=sort.descending)


def _listing(hits: Sequence[_Hit], total: int) -> Listing:
    return Listing(Documents.of_ids(dict.fromkeys(hit.fields.identity[0] for hit in hits)), total)


def _of_field(field: str, values: _Values) -> _Values:
    """The values, all of which are of a field.

    :raises ValueError: if one is not.
    """
    prefix = f"{column_name(field)}\0"
    if all(bucket.key.startswith(prefix) for bucket in values.buckets):
        return values
    raise ValueError("a value of another field")


def _number(field: str, values: _Values) -> float:
    number = term_value(_of_field(field, values).buckets[0].key)
    if isinstance(number, float) and isfinite(number):
        return number
    raise ValueError("not the term of a number")


def _facet(values: _Values, size: int, ranges: Sequence[Range], in_ranges: _Ranges | None) -> Facet:
    terms = [(term_value(bucket.key), bucket.doc_count) for bucket in values.buckets[:size]]
    listed = [FacetValue(value, count) for value, count in terms if isinstance(value, bool | str) and is_short(value)]
    others = values.sum_other_doc_count + sum(count for _, count in terms) - sum(each.count for each in listed)
    counts = [bucket.doc_count for bucket in in_ranges.buckets] if in_ranges else []
    return Facet(tuple(listed), counted(ranges, counts), others, max(values.doc_count_error_upper_bound, 0))
