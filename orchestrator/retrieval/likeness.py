"""Reads the documents that hits have to be like, and makes of them what each source searches for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from adapters import Record
from adapters.model.document import passage
from adapters.model.filter import And, Eq, Filter, In, Not, Or, conjunction, normal
from adapters.model.vectors import unit, unpacked
from adapters.ports import DocumentReader
from orchestrator.auth.visibility import visibility_check
from orchestrator.execution.budget import LIKENESS
from orchestrator.execution.search_context import SearchContext
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.likeness import LikePlan
from orchestrator.planning.plan import Plan, RankingPlan
from orchestrator.planning.planner import MAX_QUERY_CHARS
from orchestrator.retrieval.crowds import narrowed

_MAX_COLLECTIONS = 16
"""Documents with one id that are read: each is in another collection."""


async def with_likeness(plan: Plan, like: LikePlan, documents: DocumentReader, context: SearchContext) -> Plan:
    """The plan of a request that names documents, as a plan with a text, a vector if these have some, and seeds.

    :raises BadRequest: if the caller can see no such document, or several with one id.
    :raises AllSourcesFailed: if the documents cannot be read in time.
    """
    records = await _records(plan.ranking, like, documents, context) if like.ids else []
    texts = [like.text] if like.text else []
    share = (MAX_QUERY_CHARS - sum(map(len, texts))) // max(len(records), 1)
    texts += [passage(record.document)[: max(share - 1, 0)] for record in records]
    ranking = replace(plan.ranking, text="\n".join(texts).strip() or like.text)
    if records:
        ranking = narrowed(ranking, normal(Not(_whole_documents(records))))
        vector = ranking.vector or _mean(records, like.text)
        ranking = replace(ranking, seeds=tuple(record.doc_id for record in records), vector=vector)
    return replace(plan, ranking=ranking)


async def _records(
    plan: RankingPlan, like: LikePlan, documents: DocumentReader, context: SearchContext
) -> Sequence[Record]:
    """The documents, in the order of the request."""
    named: Filter = In("id", like.ids)
    if like.collection is not None:
        named = And((named, Eq("collection", like.collection)))
    async with context.reading_documents(context.deadline.within(LIKENESS)):
        found = await documents.find(conjunction(plan.access, normal(named)), _MAX_COLLECTIONS * len(like.ids))
    check = visibility_check(plan.access)
    visible = [record for record in found if check(record)]
    counts = Counter(record.document.id for record in visible)
    for id_ in like.ids:
        if not counts[id_]:
            within = f" in {like.collection[:80]!r}" if like.collection else ""
            raise BadRequest(f"like: there is no document {id_[:80]!r}{within}")
        if counts[id_] > 1:
            raise BadRequest(f"like: documents of several collections have the id {id_[:80]!r}: name the collection")
    return sorted(visible, key=lambda record: like.ids.index(record.document.id))


def _whole_documents(records: Sequence[Record]) -> Filter:
    """The documents, with all chunks of the same text."""
    alike: list[Filter] = []
    for document in (record.document for record in records):
        ids = tuple({document.id, document.parent_id or document.id})
        of_text = Or((In("id", ids), In("parent_id", ids)))
        alike.append(And((Eq("collection", document.collection), of_text)))
    return Or(tuple(alike))


def _mean(records: Sequence[Record], text: str) -> bytes | None:
    """The mean of the vectors that the documents were written with; ``None`` if the text has to be encoded."""
    vectors = [unit(unpacked(record.vector)) for record in records if record.vector is not None]
    if text or len(vectors) < len(records):
        return None
    mean = np.mean(np.asarray(vectors), axis=0)
    return unit(tuple(mean.tolist())).tobytes() if mean.any() else None
