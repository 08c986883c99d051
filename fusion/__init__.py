"""Pure ranking arithmetic: no I/O, no async, nothing of ours imported."""

from fusion.boost import BoostedHit, boost, centrality
from fusion.concatenate import Concatenate
from fusion.joint import JointWalk
from fusion.ranking import Contribution, DocId, FusedHit, Hit, Ranking
from fusion.rrf import RRF
from fusion.scores import DistributionBased, RelativeScore, WeightedSum
from fusion.strategy import STRATEGIES, Strategy, TwoRounds, parse
from fusion.walk import Adjacency, Walk

__all__ = [
    "RRF",
    "STRATEGIES",
    "Adjacency",
    "BoostedHit",
    "Concatenate",
    "Contribution",
    "DistributionBased",
    "DocId",
    "FusedHit",
    "Hit",
    "JointWalk",
    "Ranking",
    "RelativeScore",
    "Strategy",
    "TwoRounds",
    "Walk",
    "WeightedSum",
    "boost",
    "centrality",
    "parse",
]
