"""From ranked hits to whole documents, and the second lock on the door.

The sources were asked within the filter already. Here every document is held against it once more, by the
filter's own meaning and not by any backend's translation of it: what should not be here does not leave.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from adapters import Record, Sensitivity
from adapters.document import facts, fields
from adapters.filter import Filter, predicate
from fusion import Boosted, DocId, FusedHit, window
from orchestrator.contract import SearchHit

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hydrated:
    """The hits that may leave, each with how guarded it is; and how many were deleted meanwhile, or may not leave."""

    hits: tuple[SearchHit, ...] = ()
    sensitivities: tuple[Sensitivity, ...] = ()
    deleted: int = 0
    withheld: int = 0

    def __add__(self, other: Hydrated) -> Hydrated:
        """This, then the other."""
        return Hydrated(
            self.hits + other.hits,
            self.sensitivities + other.sensitivities,
            self.deleted + other.deleted,
            self.withheld + other.withheld,
        )


def hydrate(
    page: Sequence[FusedHit], boosted: Boosted, records: Mapping[DocId, Record], wanted: Filter, radius: int
) -> Hydrated:
    """The hits whose documents exist and pass."""
    may_leave = lock(wanted)
    there = [(hit, record) for hit in page if (record := records.get(hit.id)) is not None]
    passing = [(hit, record) for hit, record in there if may_leave(record)]
    if withheld := len(there) - len(passing):
        _log.error("a source returned %d documents that the request's filter forbids", withheld)
    return Hydrated(
        hits=tuple([_hit(hit, boosted, record, radius) for hit, record in passing]),
        sensitivities=tuple([record.document.sensitivity for _, record in passing]),
        deleted=len(page) - len(there),
        withheld=withheld,
    )


def lock(wanted: Filter) -> Callable[[Record], bool]:
    """Whether a document may leave, by the meaning of the filter; made once for however many documents."""
    passes = predicate(wanted)
    return lambda record: passes(fields(record))


def _hit(hit: FusedHit, boosted: Boosted, record: Record, radius: int) -> SearchHit:
    document = record.document
    return SearchHit(
        id=document.id,
        parent_id=document.parent_id,
        collection=document.collection,
        title=document.title,
        text=document.text,
        url=document.url,
        metadata=document.metadata,
        score=boosted.score(hit.id, hit.fusion_score),
        fusion_score=hit.fusion_score,
        sources=hit.sources,
        boosts=boosted.of(hit.id),
        chunk_index=document.chunk_index,
        window_id=window(facts(document), radius) if document.parent_id else None,
        span=(0, len(document.text)),
    )
