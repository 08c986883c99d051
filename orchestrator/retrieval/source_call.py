"""The search of one source: encode or expand the query if the source needs it, then search each collection."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from adapters import Expander, SourceQuery
from adapters.model.filter import Filter
from adapters.ports.graph import EntityLookup
from cache import CacheMode
from fusion import Ranking, Source, merge_collections
from orchestrator.planning.plan import CallPlan, RankingPlan
from orchestrator.retrieval.fan_out import Search
from orchestrator.retrieval.memo import MemoizedRetriever
from orchestrator.retrieval.query_encoder import QueryEncoders
from orchestrator.schema.search import Degraded, EncoderName
from orchestrator.stages.budget import EXPANSION
from orchestrator.stages.search_context import SearchContext


@dataclass(frozen=True, slots=True)
class SourceCall:
    """A source as it is searched: ``memo → retry → build check → adapter``.

    :param entities: looks up whether a query mentions an entity; only sources of role ``graph`` have it.
    :param waits: whether a search may wait for anything. Those of the embedded engine never do.
    """

    source: Source
    retriever: MemoizedRetriever
    entities: EntityLookup | None = None
    waits: bool = True


@dataclass(slots=True)
class CallReport:
    """The outcome of preparing the query of one source."""

    encoder: EncoderName | None = None
    expansions: tuple[str, ...] = ()
    degraded: list[Degraded] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class QueryPreparation:
    """Computes what sources need besides the text: a vector, and synonyms."""

    encoders: QueryEncoders
    expander: Expander | None


def prepare_search(
    call: SourceCall,
    call_plan: CallPlan,
    plan: RankingPlan,
    query: SourceQuery,
    mode: CacheMode,
    preparation: QueryPreparation,
    context: SearchContext,
    timeout_s: float,
) -> tuple[Search, CallReport]:
    """The search of one source, and a report that is filled while it runs.

    :param query: with everything that all sources of the stage share.
    :param timeout_s: of the stage.
    """
    name, report = call.source.name, CallReport()

    async def search(query: SourceQuery = query) -> Ranking:
        with context.timings.stage(name):
            return await _search_collections(call, query, call_plan.filters, mode)

    if "query_vector" in call.source.needs:
        encoders, tenant = preparation.encoders, plan.scope.tenant
        given = None if plan.vector is None else np.array(plan.vector, np.float32)
        known = encoders.without_model(plan.text, plan.encoder, tenant) if given is None else None

        async def encode_and_search() -> Ranking:
            if given is not None:
                return await search(replace(query, vector=given))
            encoded = known or await encoders.encode(plan.text, plan.encoder, tenant)
            report.encoder = encoded.encoder_used
            context.timings.record(f"embed_{encoded.encoder_used}", encoded.ms)
            return await search(replace(query, vector=encoded.vector))

        runs_model = given is None and known is None
        return Search(encode_and_search, call.waits or (runs_model and encoders.waits)), report
    expander = preparation.expander
    if "expansions" in call.source.needs and expander is not None:

        async def expand_and_search() -> Ranking:
            with context.timings.stage("expand"):
                async with context.best_effort("expansion", 1.0, timeout_s * EXPANSION) as attempt:
                    report.expansions = await expander.expand(plan.text)
            report.degraded += attempt.failures
            return await search(replace(query, expansions=report.expansions))

        return Search(expand_and_search), report
    return Search(search, call.waits), report


async def _search_collections(
    call: SourceCall, query: SourceQuery, filters: tuple[Filter, ...], mode: CacheMode
) -> Ranking:
    """Search with each filter, concurrently if the source waits."""
    queries = [query if each is query.filter else replace(query, filter=each) for each in filters]
    if len(queries) == 1 or not call.waits:
        rankings: list[Ranking] = []
        for each in queries:
            if rankings:
                await asyncio.sleep(0)  # twenty collections may take as long as twenty searches
            rankings.append(await call.retriever.search(each, mode))
        return merge_collections(rankings)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call.retriever.search(each, mode)) for each in queries]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return merge_collections([task.result() for task in tasks])
