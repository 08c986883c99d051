"""Makes hits with text from ranked rows, and checks access after retrieval.

The sources were searched with the filter already. Here every document is checked again, by the filter itself and not by
a source's translation of it: a document that fails is withheld and replaced by the next candidate.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from adapters import AdapterError, Record, Sensitivity
from adapters.model.document import Metadatum, values_of
from adapters.ports import DocumentFetcher, Snapshot
from fusion.chunks import window
from fusion.columns import Documents
from fusion.provenance import FusedHit, fused_hits
from fusion.values import DocId
from orchestrator.auth.visibility import visibility_check
from orchestrator.execution.budget import NEXT_STORE
from orchestrator.execution.search_context import SearchContext
from orchestrator.execution.stage_results import TIMED_OUT, AllSourcesFailed, Failed, Page, Ranked, logged_reason
from orchestrator.planning.plan import Plan
from orchestrator.schema.hits import SearchHit
from orchestrator.schema.search import FILTER, HYBRID

_log = logging.getLogger(__name__)

_MAX_REFILLS = 4
"""Maximum number of times that a page is filled up. Without it, a source that returns only forbidden documents would
cause an endless loop."""


async def hydrate(
    plan: Plan,
    ranked: Ranked,
    snapshot: Snapshot,
    context: SearchContext,
    embedding_model: str,
    snippet: Callable[[str, str], str],
) -> Page:
    """The page of a plan.

    :param embedding_model: the model that encoded the documents.
    :param snippet: of a text and a query.
    :raises AllSourcesFailed: if the documents cannot be read: without them there is neither text nor access check.
    """
    check, candidates = visibility_check(plan.ranking.filter), ranked.fused.candidates
    rerank = plan.page.rerank
    size = max(plan.page.limit, rerank.max_hits) if rerank else plan.page.limit
    hits: list[SearchHit] = []
    sensitivities: list[Sensitivity] = []
    end, deleted, withheld = plan.page.offset, 0, 0
    for _ in range(_MAX_REFILLS):
        rows = ranked.rows[end : end + size - len(hits)]
        if not len(rows):
            break
        end += len(rows)
        fused = fused_hits(candidates, ranked.fused.fused, rows)
        documents = candidates.documents(rows)
        records = await read_records(snapshot, documents, context)
        for hit, row in zip(fused, rows.tolist(), strict=True):
            record = records.get(hit.id)
            if record is None:
                deleted += 1
            elif not check(record):
                withheld += 1
            else:
                marked = snippet(record.document.text, plan.ranking.text) if plan.page.highlight else None
                hits.append(_search_hit(hit, row, plan, ranked, record, embedding_model, marked))
                sensitivities.append(record.document.sensitivity)
    if withheld:
        _log.error("a source returned %d documents that the request's filter excludes", withheld)
    return Page(tuple(hits), tuple(sensitivities), end, len(ranked.rows), deleted, withheld)


async def read_records(snapshot: Snapshot, documents: Documents, context: SearchContext) -> Mapping[DocId, Record]:
    """The records from the store that has them first. The next store is asked if one has failed, or takes too long.

    :raises AllSourcesFailed: if no store has them in time.
    """
    if snapshot.documents is snapshot.view:  # then reading waits for nothing
        return await snapshot.documents.fetch(snapshot.scope, documents)
    stores: list[DocumentFetcher] = [snapshot.documents, *snapshot.copies]
    reasons: list[str] = []
    running: set[asyncio.Task[Mapping[DocId, Record]]] = set()
    try:
        while stores or running:
            if stores:
                running.add(asyncio.ensure_future(stores.pop(0).fetch(snapshot.scope, documents)))
            limit_s = context.deadline.within(NEXT_STORE if stores else 1.0).remaining_s()
            done, running = await asyncio.wait(running, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                try:
                    return task.result()
                except AdapterError as error:
                    reasons.append(logged_reason("reading documents", error))
            if not (done or stores):
                reasons += [TIMED_OUT] * len(running)
                break
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    raise AllSourcesFailed((Failed("documents", "; ".join(reasons), context.timings.total_ms()),))


def _search_hit(
    hit: FusedHit, row: int, plan: Plan, ranked: Ranked, record: Record, embedding_model: str, snippet: str | None
) -> SearchHit:
    document = record.document
    sources = {source: hit.sources.get(source) for source in plan.ranking.weights}
    found_by = [source for source, contribution in sources.items() if contribution]
    metadata = document.metadata
    chunker_version = document.chunker_version or metadata.get("chunker_version")
    headings = document.heading_path
    if not headings and "heading_path" in metadata:
        headings = _headings(metadata["heading_path"])
    section = document.section or metadata.get("section", headings[-1] if headings else None)
    start = document.parent_start
    return SearchHit(
        id=document.id,
        parent_id=document.parent_id,
        collection=document.collection,
        title=document.title,
        text=document.text,
        snippet=snippet,
        url=document.url,
        created_at=document.created_at,
        importance=document.importance,
        sensitivity=document.sensitivity,
        visibility=document.visibility,
        tags=document.tags,
        language=document.language,
        metadata=metadata,
        score=float(ranked.score[row]),
        fusion_score=hit.fusion_score,
        confidence=ranked.confidences.of_row(row),
        method=found_by[0] if len(found_by) == 1 else FILTER if plan.listing else HYBRID,
        found_in=tuple(f"{source}/{document.collection}" for source in found_by),
        sources=sources,
        boosts={name: 1.0 if column is None else float(column[row]) for name, column in ranked.factors.items()},
        embedding_model=embedding_model,
        chunker_version=chunker_version if isinstance(chunker_version, str) else None,
        chunk_index=document.chunk_index,
        heading_path=headings,
        section=section if isinstance(section, str) else None,
        window_id=document.window_id or window(document.parent_id, document.chunk_index, plan.ranking.window_radius),
        span=(0, len(document.text)),
        source_span=None if start is None else (start, start + len(document.text)),
        neighbor_ids=(),
    )


def _headings(value: Metadatum) -> tuple[str, ...]:
    """The headings above a chunk, as its metadata has them: one text, or several from the outermost on."""
    return tuple(each for each in values_of(value) if isinstance(each, str))
