"""Time limits: the deadline of a request, and every fraction of it.

A stage gets a fraction of the time that remains when it begins, and at most a number of seconds where a setting has
one. The rest is for the stages after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import TypeAlias

Clock: TypeAlias = Callable[[], float]
"""Seconds from any origin, never going back."""

ALL_SOURCES = 0.8
"""Fraction of the request's time limit for all sources together: reading the documents comes after them."""
FIRST_STAGE = 0.6
"""Fraction of the sources' time for stage 1, if there is a stage 2."""
COLLECTIONS = 0.2
"""Fraction of the remaining time for reading the names of the collections, once after each write."""
LIKENESS = 0.2
"""Fraction of the remaining time for reading the documents that the hits are like."""
ENTITY_LOOKUP = 0.3
"""Fraction of the sources' remaining time for the check whether stage 2 is needed."""
EXPANSION = 0.3
"""Fraction of the time of a stage for query expansion."""
INTERLEAVING = 0.5
"""Fraction of the remaining time for the ranking of another profile: reading the documents comes after it."""
BOOSTS = 0.5
"""Fraction of the remaining time for each boost: reading the documents comes after them."""
NEXT_STORE = 0.5
"""Fraction of the remaining time after which documents are read from the next store, too."""
RERANK = 0.8
"""Fraction of the remaining time for the reranker: neighbouring chunks are read after it."""
FACETS = 0.8
"""Fraction of the remaining time for counting values: the explanation comes after it."""
EXPLAIN = 1.0
"""Fraction of the remaining time for the explanation: no stage comes after it."""
NEIGHBORS = 1.0
"""Fraction of the remaining time for neighbouring chunks."""
CONTEXT = 1.0
"""Fraction of the remaining time for counting tokens."""
WRITES = 0.5
"""Fraction of the request's time limit for waiting until searches show a write that the request names."""
EXPECTED_WAIT = 0.5
"""Admission: a request is rejected at once if its expected wait exceeds this fraction of its time limit."""
MAX_WAIT = 0.75
"""Admission: a request is rejected after it has waited for this fraction of its time limit. The gap between the two
keeps admitted requests from timing out in the queue. For a tenant with less than its fair share of the queue the
expected wait may be up to this fraction, less a service time, because other tenants fill the queue."""
BLAMED_TIMEOUT = 0.5
"""Circuit breakers: a time-out counts as a failure only if the source had at least this fraction of its usual time."""

_MIN_S = 0.001
"""Minimum time of a stage, which is enough if its result is ready."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment at which a request, or a stage of it, has to end."""

    expires_at: float
    clock: Clock = perf_counter

    @classmethod
    def after(cls, seconds: float, clock: Clock = perf_counter) -> Deadline:
        """A deadline ``seconds`` from now."""
        return cls(clock() + seconds, clock)

    def remaining_s(self) -> float:
        """The remaining seconds, at least one millisecond."""
        return max(self.expires_at - self.clock(), _MIN_S)

    def within(self, fraction: float, max_s: float = inf) -> Deadline:
        """The deadline of a stage that gets a fraction of the remaining time, and ``max_s`` seconds at most."""
        now = self.clock()
        remaining_s = max(self.expires_at - now, _MIN_S)
        return Deadline(now + min(fraction * remaining_s, max_s), self.clock)


def sources_timeout_s(request_timeout_ms: int, source_timeout_ms: int) -> float:
    """The time limit of all sources together, in seconds."""
    return min(request_timeout_ms * ALL_SOURCES, source_timeout_ms) / 1_000
