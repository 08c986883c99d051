"""What an evaluation searches: an opened service, or another index with the same answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import msgspec
from msgspec import UNSET

from adapters import Document
from adapters.model.batching import batches
from adapters.model.filter import Filter, In, Or
from orchestrator.auth.principal import Principal
from orchestrator.evaluation.judgments import JudgedQueries
from orchestrator.evaluation.runs import RUNS, make_request, run_fields
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.hits import SearchHit
from orchestrator.schema.search import SearchResponse
from orchestrator.service.service import Service

_BATCH_IDS = 256


class IncompleteRun(Exception):
    """A run is not complete, so it must not be measured: the message names the query and what is missing."""


class RankedHit(msgspec.Struct, frozen=True, array_like=True):
    """One hit of a result. ``ranks`` are by source, from 1; ``parent`` is the document that a chunk belongs to."""

    id: str
    score: float
    ranks: dict[str, int]
    parent: str | None = None


class QueryResult(msgspec.Struct, frozen=True):
    """The hits of one query of one run, and the sources that were searched."""

    run: str
    query: str
    hits: list[RankedHit]
    sources: tuple[str, ...]


Results: TypeAlias = Mapping[str, Mapping[str, QueryResult]]
"""Results by run and query."""


class SearchedIndex(Protocol):
    """An index that answers the queries of runs."""

    async def search(self, run: str, query_id: str, text: str) -> QueryResult:
        """The result of one query of a run.

        :raises IncompleteRun: if the request is refused, or a source failed.
        """
        ...

    async def titles(self, ids: Collection[str]) -> dict[str, str]:
        """The titles of those documents that exist, by id. The parent of a chunk exists, and has its title, if there is
        no document of its own.
        """
        ...


@dataclass(frozen=True, slots=True)
class ServiceIndex:
    """The index of an opened service, as a principal sees it."""

    service: Service
    principal: Principal

    async def search(self, run: str, query_id: str, text: str) -> QueryResult:
        """See :class:`SearchedIndex`."""
        search = self.service.search
        fields = run_fields(run, [source.name for source in search.sources])
        variant = search.with_settings(search.settings.changed(**RUNS[run].settings))
        try:
            response = await variant.search(make_request(text, fields), self.principal, f"{run}:{query_id}")
        except BadRequest as error:
            raise IncompleteRun(f"{run}, query {query_id!r}: {error}") from error
        require_complete(response, f"{run}, query {query_id!r}")
        return QueryResult(run, query_id, ranked(response.hits), response.route.sources)

    async def titles(self, ids: Collection[str]) -> dict[str, str]:
        """See :class:`SearchedIndex`."""
        found: list[Document] = []
        for batch in batches(sorted(ids), _BATCH_IDS):
            found += [each async for each in self.service.documents.all(self.principal, named(batch))]
        return titles_by_id(((each.id, each.parent_id, each.title) for each in found), ids)


async def search_all(
    index: SearchedIndex, judged: JudgedQueries, runs: Iterable[str], advance: Callable[[int], None]
) -> Results:
    """Search every query of some runs, one at a time; ``advance`` is called with 1 after each.

    :raises IncompleteRun: if one cannot be searched.
    """
    results: dict[str, dict[str, QueryResult]] = {}
    for run in runs:
        results[run] = {}
        for id_, text in judged.queries.items():
            results[run][id_] = await index.search(run, id_, text)
            advance(1)
    return results


def require_complete(response: SearchResponse, query: str) -> SearchResponse:
    """The response, if no source failed and it is of one profile.

    :raises IncompleteRun: if not.
    """
    if response.profiles is not UNSET:
        raise IncompleteRun(f"{query}: the service mixes the hits of two profiles: TRIVIUM_INTERLEAVE")
    for failure in response.degraded:
        raise IncompleteRun(f"{query}: {failure.source} failed: {failure.reason}")
    return response


def ranked(hits: Iterable[SearchHit]) -> list[RankedHit]:
    """The part of hits that is measured."""
    return [
        RankedHit(
            hit.id,
            hit.score,
            {source: part.rank for source, part in hit.sources.items() if part is not None},
            hit.parent_id,
        )
        for hit in hits
    ]


def named(ids: Iterable[str]) -> Filter:
    """The documents with one of some ids, and their chunks."""
    chosen = tuple(ids)
    return Or((In("id", chosen), In("parent_id", chosen)))


def titles_by_id(documents: Iterable[tuple[str, str | None, str]], ids: Collection[str]) -> dict[str, str]:
    """The titles of some ids.

    :param documents: id, parent and title of documents and chunks; the title of a chunk counts for a parent that is not
        among them.
    """
    titles: dict[str, str] = {}
    for id_, parent, title in documents:
        titles[id_] = title
        if parent is not None:
            titles.setdefault(parent, title)
    return {id_: title for id_, title in titles.items() if id_ in ids}
