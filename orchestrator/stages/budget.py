"""Time: the deadline of a request, and every fraction of it, in one table.

A stage gets a fraction of the time that is left when it begins, and at most a number of seconds where a setting says
so. The rest is for the stages after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import TypeAlias

Clock: TypeAlias = Callable[[], float]
"""Seconds from any origin, never going back."""

SOURCES = 0.8
"""All sources together, of the request's time limit: reading the documents comes after them."""
FIRST_STAGE = 0.6
"""Stage 1, of the sources' time, if there is a stage 2."""
COLLECTIONS = 0.2
"""The names of the collections, of the time left; they are read once after each write."""
ENTITY_LOOKUP = 0.3
"""The check whether stage 2 is needed, of the time left for the sources."""
EXPANSION = 0.3
"""Query expansion, of the time of its stage."""
BOOSTS = 0.5
"""Each boost, of the time left: reading the documents comes after them."""
RERANK = 0.8
"""The reranker, of the time left: neighbouring chunks are read after it."""
EXPLAIN = 1.0
"""The explanation, of the time left: nothing comes after it."""
CONTEXT = 1.0
"""Neighbouring chunks, of the time left."""
EXPECTED_WAIT = 0.5
"""Admission: a request is rejected at once if its expected wait exceeds this fraction of its time limit."""
MAX_WAIT = 0.75
"""Admission: a request is rejected after it has waited for this fraction of its time limit. The gap between the two
keeps admitted requests from timing out in the queue. For a tenant with less than its fair share of the queue the limit
of the expected wait is this one less a service time: others fill the queue, so a few requests of its own are no
overload."""
BLAMED_TIMEOUT = 0.5
"""Circuit breakers: a source that timed out is at fault only if it had at least this fraction of its usual time."""

_MIN_S = 0.001
"""A result that is ready needs no time to be taken, so no stage gets less."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment at which a request, or a stage of it, has to be done."""

    expires_at: float
    clock: Clock = perf_counter

    @classmethod
    def after(cls, seconds: float, clock: Clock = perf_counter) -> Deadline:
        """A deadline ``seconds`` from now."""
        return cls(clock() + seconds, clock)

    def remaining_s(self) -> float:
        """Seconds left, at least one millisecond."""
        return max(self.expires_at - self.clock(), _MIN_S)

    def within(self, fraction: float, max_s: float = inf) -> Deadline:
        """The deadline of a stage that gets a fraction of the time left, and ``max_s`` seconds at most."""
        now = self.clock()
        remaining_s = max(self.expires_at - now, _MIN_S)
        return Deadline(now + min(fraction * remaining_s, max_s), self.clock)


def sources_timeout_s(request_timeout_ms: int, source_timeout_ms: int) -> float:
    """The time limit of all sources together, in seconds."""
    return min(request_timeout_ms * SOURCES, source_timeout_ms) / 1_000
