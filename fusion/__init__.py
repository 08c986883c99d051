"""Pure ranking arithmetic: no I/O, no async, nothing of ours imported."""

from fusion.boost import Boosted, Factors, boost, centrality, importance, recency, relationship
from fusion.collapse import Collapse, Collapsed, collapse, window
from fusion.concatenate import Concatenate
from fusion.fused import Contribution, Fused, FusedHit
from fusion.joint import JointWalk
from fusion.merge import merged
from fusion.ranking import DocId, Facts, Hit, Ranking
from fusion.rrf import RRF
from fusion.scores import ScoreSum, dbsf, relative_score, weighted_sum
from fusion.strategy import STRATEGIES, Strategy, TwoRounds, parse
from fusion.walk import Adjacency, Walk

__all__ = [
    "RRF",
    "STRATEGIES",
    "Adjacency",
    "Boosted",
    "Collapse",
    "Collapsed",
    "Concatenate",
    "Contribution",
    "DocId",
    "Factors",
    "Facts",
    "Fused",
    "FusedHit",
    "Hit",
    "JointWalk",
    "Ranking",
    "ScoreSum",
    "Strategy",
    "TwoRounds",
    "Walk",
    "boost",
    "centrality",
    "collapse",
    "dbsf",
    "importance",
    "merged",
    "parse",
    "recency",
    "relationship",
    "relative_score",
    "weighted_sum",
    "window",
]
