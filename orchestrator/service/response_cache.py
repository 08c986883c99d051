"""Responses as bytes, in two levels of cache."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from cache import CacheMode, Computed, Level, TieredCache
from orchestrator.planning.plan import Plan
from orchestrator.schema.search import ResponseBody, ResponseMeta
from orchestrator.service.errors import Overloaded
from orchestrator.telemetry.spans import StageTimings

_encode = msgspec.json.Encoder().encode

ComputeBody: TypeAlias = Callable[[bool], Coroutine[Any, Any, ResponseBody]]
"""Computes a body; its argument is whether to ignore memoized parts."""


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """A response to send.

    :param query_id: names this response in feedback.
    :param limit_ms: the time limit of the request.
    :param computed: the body, and the time of each stage, if it was computed for this request.
    """

    content: bytes
    query_id: str
    cache: Level
    plan: Plan
    limit_ms: int
    computed: ResponseBody | None
    timings: StageTimings | None

    @property
    def timings_ms(self) -> Mapping[str, float]:
        """The ms of each stage; empty if it was not computed for this request."""
        return self.timings.stages_ms if self.timings else {}


class ResponseCache:
    """L1 cache (one computation per key) → admission → L2 cache → computation."""

    def __init__(self, levels: TieredCache) -> None:
        self.levels = levels

    async def get_or_compute(
        self,
        key: bytes,
        mode: CacheMode,
        compute: ComputeBody,
        *,
        is_shared: bool,
        execution: bytes,
        would_reject: Callable[[], Overloaded | None],
    ) -> tuple[bytes, Level]:
        """The encoded body of a key.

        :param is_shared: whether the key is the same in other processes, so that L2 may be used.
        :param execution: what a computation depends on besides the key: its time limit. Requests that differ in it do
            not share a computation, nor a degraded response.
        :param would_reject: called before a computation is started or awaited.
        :raises Overloaded: if ``would_reject`` returns an error.
        """

        async def encoded(recompute: bool) -> Computed:
            body = await compute(recompute)
            # A degraded response is cached for a moment only: the source may be available again.
            return Computed(_encode(body), cacheable=not body.degraded)

        return await self.levels.get_or_compute(key, encoded, mode, execution, is_shared, would_reject)


def with_meta(body: bytes, meta: ResponseMeta) -> bytes:
    """Two JSON objects as one, without decoding the first: a comma replaces its closing brace."""
    return body[:-1] + b"," + _encode(meta)[1:]
