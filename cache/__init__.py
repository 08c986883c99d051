"""A cache of bytes in two levels, and the small tools that it is built from.

Here: cache entries and their freshness, the in-process level (L1), the level in Redis (L2), one computation per key,
a circuit breaker, and the counters that invalidate entries. Not here: anything that knows what the bytes mean (queries,
responses, tenants) or that reads settings. The package imports nothing else of this project, and ``redis`` is imported
only by modules that this file does not import.
"""

from cache.circuit_breaker import CircuitBreaker
from cache.entry import CacheEntry
from cache.key import hash_key
from cache.memory import MemoryLevel
from cache.port import InvalidationCounters, SharedLevel
from cache.single_flight import SingleFlight
from cache.stats import Stats
from cache.tiered import CacheMode, CachePolicy, Compute, Computed, Level, TieredCache

__all__ = [
    "CacheEntry",
    "CacheMode",
    "CachePolicy",
    "CircuitBreaker",
    "Compute",
    "Computed",
    "InvalidationCounters",
    "Level",
    "MemoryLevel",
    "SharedLevel",
    "SingleFlight",
    "Stats",
    "TieredCache",
    "hash_key",
]
