"""How far the graph of each scope can be trusted: the measurements, as they are stored and used."""

from __future__ import annotations

from math import log
from pathlib import Path

import msgspec

from adapters import Scope, Sensitivity
from orchestrator.measurement.scope_file import Measurements, ScopeFile

TRUST_FILE = "graph-trust.json"
"""Name of the file in the data folder."""
_NO_TRUST, _FULL_TRUST = 0.2, 0.4
"""Shuffled graphs are at 0 and below, those of the development sets at 0.5 and above."""


class ScopeTrust(msgspec.Struct, frozen=True):
    """The measurement of what may be seen of one scope at one clearance.

    :param lift: how many times as often as by chance a walk finds documents that vectors also find; the median.
    :param walks: number of walks that were measured.
    :param highest_lift: the lift of a walk that finds only such documents.
    """

    tenant: str
    environment: str
    clearance: Sensitivity
    lift: float
    walks: int
    highest_lift: float

    @property
    def graph_weight_factor(self) -> float:
        """The factor on the weight of the graph: on a logarithmic scale from chance (0) to the highest lift (1), 0 up
        to 0.2 and 1 from 0.4 on. The highest lift grows with the corpus, so the scale does, too.
        """
        position = log(self.lift) / log(self.highest_lift) if self.lift > 0 else 0.0
        return min(max((position - _NO_TRUST) / (_FULL_TRUST - _NO_TRUST), 0.0), 1.0)


TrustMeasurements = Measurements[ScopeTrust]


class GraphTrust(ScopeFile[ScopeTrust]):
    """The measurements at ``path``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, ScopeTrust)

    def weight_factor(self, scope: Scope, clearance: Sensitivity) -> float:
        """The factor on the default weight of the graph; 1 for a scope that was not measured."""
        trust = self.of_scope(scope, clearance)
        return 1.0 if trust is None else trust.graph_weight_factor
