"""Pure ranking arithmetic: no I/O, no async, nothing of ours imported."""

from fusion.boost import BoostedHit, boost, centrality
from fusion.concatenate import Concatenate
from fusion.ranking import Contribution, DocId, FusedHit, Hit, Ranking
from fusion.rrf import RRF
from fusion.strategy import STRATEGIES, Strategy, parse
from fusion.walk import Adjacency, Walk

__all__ = [
    "RRF",
    "STRATEGIES",
    "Adjacency",
    "BoostedHit",
    "Concatenate",
    "Contribution",
    "DocId",
    "FusedHit",
    "Hit",
    "Ranking",
    "Strategy",
    "Walk",
    "boost",
    "centrality",
    "parse",
]
