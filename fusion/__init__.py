"""Pure ranking arithmetic: no I/O, no async, nothing of ours imported."""

from fusion.boost import BoostedHit, boost, centrality
from fusion.concatenate import Concatenate
from fusion.joint import JointWalk
from fusion.ranking import Contribution, DocId, FusedHit, Hit, Ranking
from fusion.rrf import RRF
from fusion.strategy import STRATEGIES, Strategy, TwoRounds, parse
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
    "JointWalk",
    "Ranking",
    "Strategy",
    "TwoRounds",
    "Walk",
    "boost",
    "centrality",
    "parse",
]
