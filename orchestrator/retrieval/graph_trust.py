"""How far the graph of each scope can be trusted: the measurements, as they are stored and used."""

from __future__ import annotations

from pathlib import Path

import msgspec

from adapters import Scope
from orchestrator.retrieval.scope_file import Measurements, ScopeFile

TRUST_FILE = "graph-trust.json"
"""Its name in the data folder."""


class ScopeTrust(msgspec.Struct, frozen=True):
    """The measurement of one scope.

    :param lift: how many times more often than by chance a walk finds documents that vectors find, too; the median.
    :param walks: number of walks that were measured.
    """

    tenant: str
    environment: str
    lift: float
    walks: int

    @property
    def graph_weight_factor(self) -> float:
        """The factor on the weight of the graph: 0 up to twice chance, 1 from three times on."""
        return min(max(self.lift - 2.0, 0.0), 1.0)


TrustMeasurements = Measurements[ScopeTrust]


class GraphTrust(ScopeFile[ScopeTrust]):
    """The measurements at ``path``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, ScopeTrust)

    def weight_factor(self, scope: Scope) -> float:
        """The factor on the default weight of the graph; 1 for a scope that was not measured."""
        trust = self.of_scope(scope)
        return 1.0 if trust is None else trust.graph_weight_factor
