"""Pure ranking arithmetic on columns: no I/O, no ``async``, no import of another package of this project.

Here: rankings and candidates, fusion strategies, boosts, collapsing of chunks, the walk over a graph. Not here:
anything that reads an index, a clock or a setting.
"""

from fusion.boosts import Boosted, Factors, boost, centrality, importance, recency, relationship
from fusion.chunks import Collapsed, CollapseMode, collapse, window
from fusion.collections import merge_collections
from fusion.columns import Candidates, Documents, DocumentTable, IdTable, RankedDocument, Ranking, extended
from fusion.concatenate import Concatenate
from fusion.confidence import (
    UNKNOWN,
    Calibration,
    Calibrations,
    Confidences,
    calibration_name,
    evidence,
    evidence_sources,
)
from fusion.joint_walk import JointWalk
from fusion.provenance import Contribution, FusedHit, fused_hits
from fusion.random_walk import Adjacency, Walk, WalkScratch
from fusion.rank_fields import DocId, DocumentFields, Floats, Ints, RankFields
from fusion.rrf import RRF
from fusion.scores import ScoreSum, dbsf, relative_score, weighted_sum
from fusion.source import Source, Sources
from fusion.strategy import STRATEGIES, SeededStrategy, Strategy, parse
from fusion.sums import Fused, rank_by_sum, sum_contributions

__all__ = [
    "RRF",
    "STRATEGIES",
    "UNKNOWN",
    "Adjacency",
    "Boosted",
    "Calibration",
    "Calibrations",
    "Candidates",
    "CollapseMode",
    "Collapsed",
    "Concatenate",
    "Confidences",
    "Contribution",
    "DocId",
    "DocumentFields",
    "DocumentTable",
    "Documents",
    "Factors",
    "Floats",
    "Fused",
    "FusedHit",
    "IdTable",
    "Ints",
    "JointWalk",
    "RankFields",
    "RankedDocument",
    "Ranking",
    "ScoreSum",
    "SeededStrategy",
    "Source",
    "Sources",
    "Strategy",
    "Walk",
    "WalkScratch",
    "boost",
    "calibration_name",
    "centrality",
    "collapse",
    "dbsf",
    "evidence",
    "evidence_sources",
    "extended",
    "fused_hits",
    "importance",
    "merge_collections",
    "parse",
    "rank_by_sum",
    "recency",
    "relationship",
    "relative_score",
    "sum_contributions",
    "weighted_sum",
    "window",
]
