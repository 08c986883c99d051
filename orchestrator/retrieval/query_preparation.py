"""What sources need of a query besides its text: a vector, and synonyms."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from adapters.ports import Expander, SourceQuery
from fusion.source import Source
from orchestrator.execution.budget import EXPANSION
from orchestrator.execution.search_context import SearchContext
from orchestrator.planning.plan import RankingPlan
from orchestrator.retrieval.query_encoder import QueryEncoders
from orchestrator.schema.search import Degraded, EncoderName


@dataclass(slots=True)
class PreparedParts:
    """What was used to prepare the queries of one request.

    :param encoder: the encoder of the vector; ``None`` if no query was encoded.
    """

    encoder: EncoderName | None = None
    expansions: tuple[str, ...] = ()
    degraded: list[Degraded] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class QueryPreparation:
    """Adds to a query what a source needs."""

    encoders: QueryEncoders
    expander: Expander | None

    def may_wait(self, source: Source, plan: RankingPlan) -> bool:
        """Whether :meth:`prepare` may wait for anything but an iteration of the event loop."""
        if "expansions" in source.needs and self.expander is not None:
            return True
        if "query_vector" not in source.needs or plan.vector is not None or not self.encoders.waits:
            return False
        return self.encoders.without_model(plan.text, plan.encoder, plan.scope.tenant) is None

    async def prepare(
        self,
        query: SourceQuery,
        source: Source,
        plan: RankingPlan,
        context: SearchContext,
        timeout_s: float,
        parts: PreparedParts,
    ) -> SourceQuery:
        """The query as a source gets it.

        :param timeout_s: of the stage.
        :param parts: gets what was used.
        """
        if "query_vector" in source.needs:
            if plan.vector is not None:
                return replace(query, vector=np.frombuffer(plan.vector, "<f4"))
            tenant = plan.scope.tenant
            encoded = self.encoders.without_model(plan.text, plan.encoder, tenant) or await self.encoders.encode(
                plan.text, plan.encoder, tenant
            )
            parts.encoder = encoded.encoder_used
            context.timings.record(f"embed_{encoded.encoder_used}", encoded.ms)
            return replace(query, vector=encoded.vector)
        if "expansions" in source.needs and self.expander is not None:
            with context.timings.stage("expand"):
                async with context.best_effort("expansion", 1.0, timeout_s * EXPANSION) as attempt:
                    parts.expansions = await self.expander.expand(plan.text)
            parts.degraded += attempt.failures
            return replace(query, expansions=parts.expansions)
        return query
