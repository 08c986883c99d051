"""Keys, bytes and how long they are kept; never a query. Imports nothing of ours."""

from cache.breaker import Breaker
from cache.flight import Flights
from cache.key import key
from cache.memo import Memo
from cache.memory import Memory
from cache.policy import Entry
from cache.port import Numbers, SecondLevel
from cache.stats import Stats
from cache.tiered import Level, Load, Made, Tiered, Times, Use

__all__ = [
    "Breaker",
    "Entry",
    "Flights",
    "Level",
    "Load",
    "Made",
    "Memo",
    "Memory",
    "Numbers",
    "SecondLevel",
    "Stats",
    "Tiered",
    "Times",
    "Use",
    "key",
]
