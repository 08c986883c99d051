"""Compares a generation with the live one, before it may become live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from adapters import Record, Unavailable
from adapters.model.protection import HIGHEST_CLEARANCE
from orchestrator.auth.principal import Principal
from orchestrator.execution.stage_results import AllSourcesFailed
from orchestrator.indexing.generations.stores import Stores, scope_of
from orchestrator.schema.search import SearchRequest
from orchestrator.service.search import SearchService

_DOCUMENTS, _QUERIES = 200, 50
_HITS = 10
_TIMEOUT_MS = 10_000
_QUERY_WORDS = 12
_MAX_NAMED = 5


class Side(NamedTuple):
    """One of the two generations."""

    stores: Stores
    search: SearchService


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of comparing a generation with the live one.

    :param counts: number of documents by store of the new generation.
    :param live_documents: of the live generation.
    :param sampled: documents that were compared field by field; ``different``: those that are not the same, by id.
    :param queries: that were searched in both; ``overlap``: the mean fraction of the live hits that are hits of the
        new generation, too.
    """

    counts: Mapping[str, int | str]
    live_documents: int
    sampled: int
    different: tuple[str, ...]
    queries: int
    overlap: float

    def require(self, min_overlap: float, tolerated: int | None) -> None:
        """Check that the generation may become live.

        :param tolerated: how many documents may be in one of the two generations only; ``None``: any number.
        :raises Unavailable: with what is not as it should be.
        """
        unknown = {store: count for store, count in self.counts.items() if not isinstance(count, int)}
        if unknown:
            raise Unavailable("; ".join(f"{store} cannot be counted: {reason}" for store, reason in unknown.items()))
        if len(set(self.counts.values())) > 1:
            raise Unavailable(f"the stores have different numbers of documents: {_shown(self.counts)}")
        present = next((count for count in self.counts.values() if isinstance(count, int)), 0)
        if self.live_documents and not present:
            raise Unavailable("the new generation has no documents")
        if tolerated is not None:
            if abs(present - self.live_documents) > tolerated:
                raise Unavailable(
                    f"{present} documents of {self.live_documents} are in the new generation, {tolerated} may differ"
                )
            if len(self.different) > tolerated:
                named = ", ".join(self.different[:_MAX_NAMED])
                raise Unavailable(f"{len(self.different)} of {self.sampled} documents are not the same: {named}")
        if self.overlap < min_overlap:
            raise Unavailable(
                f"searches find {self.overlap:.0%} of the live hits, the minimum is {min_overlap:.0%} (--min-overlap)"
            )


async def verify(live: Side, target: Side) -> Verification:
    """Compare counts, some documents, and the hits of some queries.

    :raises AdapterError: if a store does not answer.
    """
    samples = await live.stores.documents.sample(_DOCUMENTS)
    found = await target.stores.newest([record.key for record in samples])
    different = [each.doc_id for each in samples if (other := found.get(each.key)) is None or not _same(each, other)]
    overlaps = [
        overlap
        for record in samples[:: max(1, len(samples) // _QUERIES)][:_QUERIES]
        if (overlap := await _overlap(live.search, target.search, record)) is not None
    ]
    counts = await target.stores.counts()
    live_counts = await live.stores.counts()
    return Verification(
        counts,
        max((count for count in live_counts.values() if isinstance(count, int)), default=0),
        len(samples),
        tuple(different),
        len(overlaps),
        sum(overlaps) / len(overlaps) if overlaps else 1.0,
    )


def _same(one: Record, other: Record) -> bool:
    """Whether two records have the same document. Its entities may be found by another extractor."""
    return one.document == other.document and one.vector == other.vector


async def _overlap(live: SearchService, target: SearchService, record: Record) -> float | None:
    """The fraction of the live hits of a query from a document that the target has, too; ``None`` without any."""
    query = record.document.title or " ".join(record.document.text.split()[:_QUERY_WORDS])
    if not query:
        return None
    principal = Principal("verification", scope_of(record), HIGHEST_CLEARANCE)
    hits, others = await _hits(live, query, principal), await _hits(target, query, principal)
    return len(hits & others) / len(hits) if hits else None


async def _hits(search: SearchService, query: str, principal: Principal) -> set[tuple[str, str]]:
    request = SearchRequest(query=query, limit=_HITS, timeout_ms=_TIMEOUT_MS, highlight=False)
    try:
        response = await search.search(request, principal, principal.name)
    except AllSourcesFailed as error:
        raise Unavailable(f"a search failed: {error}") from error
    return {(hit.collection, hit.id) for hit in response.hits}


def _shown(counts: Mapping[str, int | str]) -> str:
    return ", ".join(f"{store} {count}" for store, count in counts.items())
