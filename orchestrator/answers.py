"""Answers as bytes: from the cache, where one is kept that is still right for whoever asks; else from the engine."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, time
from typing import Any

import msgspec

from cache import Level, Made, Tiered, key
from orchestrator.admission import Admission
from orchestrator.caller import Caller
from orchestrator.contract import Answer, Delivery, SearchRequest, SearchResponse
from orchestrator.cursor import deciding
from orchestrator.engine import Engine
from orchestrator.plan import filters
from orchestrator.settings import Settings
from orchestrator.timing import day
from orchestrator.versions import Versions

_encode = msgspec.json.Encoder().encode

NOT_IN_ANSWERS = frozenset(
    {
        "breaker_failures", "breaker_pause_ms", "retry_share", "hedge_ms", "max_in_flight", "max_waiting", "keys_file",
        "max_header_bytes", "max_connections", "receive_timeout_ms", "drain_ms", "grace_ms",
        "data_dir", "model_dir", "log_level", "cache", "cache_bytes", "cache_ttl_s", "cache_stale_s",
        "cache_timeout_ms", "cache_poll_ms", "ranking_memo", "query_memo", "follow_ms", "replay_ms", "tenant",
        "environment", "open_clearance", "max_body_bytes", "max_document_bytes", "journal_max_bytes",
        "write_timeout_ms", "backend_connections", "qdrant_api_key", "reranker_api_key",
    }
)  # fmt: skip
"""Settings that change no answer: processes that differ in these alone share what they keep."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A body to send; and the answer as it was computed, if it was computed for this request."""

    body: bytes
    cache: Level
    computed: SearchResponse | None


class Answers:
    """The engine behind two levels of cache. What they have is given at once; the engine has to be admitted to.

    :param clock: seconds since the epoch.
    """

    def __init__(
        self,
        engine: Engine,
        kept: Tiered,
        versions: Versions,
        settings: Settings,
        admission: Admission,
        clock: Callable[[], float] = time,
    ) -> None:
        self.kept = kept
        self._admission = admission
        self._engine = engine
        self._versions = versions
        self._settings = settings
        self._clock = clock
        self._same = key(
            version("trivium"),
            msgspec.json.schema(Answer),
            settings.model_dump(mode="json", exclude=set(NOT_IN_ANSWERS)),
            _content(settings.expander),
        )

    async def respond(self, asked: SearchRequest, caller: Caller, request_id: str) -> Delivered:
        """The answer, encoded.

        :raises BadRequest: as :meth:`Engine.search`.
        :raises AllSourcesFailed: likewise.
        :raises Overloaded: if it cannot be computed in time, for there is too much to do.
        """
        began = perf_counter()
        computed: SearchResponse | None = None

        async def compute(anew: bool) -> Made:
            nonlocal computed
            # A renewal is nobody's request, and has the time of a whole one; else some is spent on asking Redis.
            since = perf_counter() if anew and asked.cache == "use" else began

            def left_ms() -> float:
                return asked.timeout_ms - (perf_counter() - since) * 1_000

            def search() -> Coroutine[Any, Any, SearchResponse]:
                left = msgspec.structs.replace(
                    asked,
                    timeout_ms=max(1, int(left_ms())),
                    cache="refresh" if anew and asked.cache == "use" else asked.cache,
                )
                return self._engine.search(left, caller, request_id)

            computed = await self._admission.run(caller.scope.tenant, left_ms() / 1_000, search)
            # What was partly missing is right for a moment at most: the source may be back.
            return Made(_encode(_answer(computed)), lasting=not computed.degraded)

        shared = await self._versions.learn(caller.scope)
        known = self.key(asked, caller)
        content, level = await self.kept.get(
            known,
            compute,
            asked.cache,
            b"%d" % asked.timeout_ms,
            shared,
            lambda: self._admission.refusal(caller.scope.tenant, asked.timeout_ms / 1_000),
        )
        delivery = Delivery(
            cache=level,
            took_ms=(perf_counter() - began) * 1_000,
            timings_ms=computed.timings_ms if computed else {},
            request_id=request_id,
        )
        # Two objects as one, without reading the first again: its closing brace for a comma.
        return Delivered(content[:-1] + b"," + _encode(delivery)[1:], level, computed)

    def key(self, asked: SearchRequest, caller: Caller) -> bytes:
        """What the answer hangs on: the request in canonical form, who asks, and what is being asked.

        :raises BadRequest: if the request's filter is not allowed.
        """
        _, wanted, _ = filters(asked, caller, self._settings)
        return key(
            deciding(asked, wanted, caller),
            (asked.limit, asked.cursor, asked.explain, asked.rerank),
            self._versions.now(caller.scope),
            self._engine.index.index_version,
            self._engine.guard(caller.scope),
            self._same.hex(),
            day(self._clock()),
        )


def _content(expander: str) -> bytes:
    """Of the file of synonyms, if there is one: its name says nothing of what is in it."""
    path = expander.removeprefix("synonyms://")
    return Path(path).read_bytes() if path != expander else b""


def _answer(response: SearchResponse) -> Answer:
    return Answer(**{name: getattr(response, name) for name in Answer.__struct_fields__})
