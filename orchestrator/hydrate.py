"""From ranked hits to whole documents, and the second lock on the door.

The sources were asked within the filter already. Here every document is held against it once more, by the
filter's own meaning and not by any backend's translation of it: what should not be here does not leave.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from adapters import Record
from adapters.document import fields
from adapters.filter import Filter, predicate
from fusion import BoostedHit, DocId
from orchestrator.contract import SearchHit

_log = logging.getLogger(__name__)


def hydrate(
    best: Sequence[BoostedHit], records: Mapping[DocId, Record], wanted: Filter
) -> tuple[tuple[SearchHit, ...], int]:
    """The hits whose documents exist and pass, and how many were withheld because they do not pass."""
    hits: list[SearchHit] = []
    withheld = 0
    may_leave = lock(wanted)
    for hit in best:
        record = records.get(hit.fused.id)
        if record is None:  # deleted between the search and now
            continue
        if not may_leave(record):
            withheld += 1
            _log.error("a source returned a document that the request's filter forbids")
            continue
        hits.append(_hit(hit, record))
    return tuple(hits), withheld


def lock(wanted: Filter) -> Callable[[Record], bool]:
    """Whether a document may leave, by the meaning of the filter; made once for however many documents."""
    passes = predicate(wanted)
    return lambda record: passes(fields(record))


def _hit(hit: BoostedHit, record: Record) -> SearchHit:
    document = record.document
    return SearchHit(
        id=document.id,
        parent_id=document.parent_id,
        collection=document.collection,
        title=document.title,
        text=document.text,
        url=document.url,
        metadata=document.metadata,
        score=hit.score,
        fusion_score=hit.fused.fusion_score,
        sources=hit.fused.sources,
        boosts=hit.factors,
    )
