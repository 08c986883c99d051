"""How central each document is in the whole graph, by a measure that networkx knows by name.

Computed by a job after bulk writes, kept beside the index, and read as a prior: documents that came since have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import networkx as nx
import numpy as np
import numpy.typing as npt
from scipy import sparse

from adapters import files
from adapters.embedded import Catalog
from adapters.errors import Unavailable
from adapters.graph.part import Graph
from adapters.port import Centrality

_PIVOTS = 64
"""Nodes that betweenness is estimated from (Brandes, Pich 2007): the exact one takes hours on a large graph."""

MEASURES: Mapping[str, Callable[[nx.DiGraph], Mapping[Any, float]]] = {
    "pagerank": nx.pagerank,
    "degree": nx.degree_centrality,
    "betweenness": lambda graph: nx.betweenness_centrality(graph, k=min(_PIVOTS, len(graph)), seed=0),
    "harmonic": lambda graph: nx.harmonic_centrality(graph, sources=_spread(graph)),
}


class _Stored(msgspec.Struct, frozen=True):
    name: str
    generation: int
    docnos: bytes
    values: bytes


class CentralityFile:
    """The centralities at ``path``, where there are any, followed as they are computed again."""

    def __init__(self, path: Path, name: Centrality) -> None:
        self.path = path
        self.name = name
        self.generation = 0
        self._stamp: tuple[int, int] | None = None
        # One attribute, so that a reader on the event loop never sees half of what a thread has read.
        self._values: tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]] = (
            np.zeros(0, np.int64),
            np.zeros(0, np.float32),
        )
        self.refresh()

    def refresh(self) -> None:
        """Read the file if it is another one than the last time; one of another measure counts as none.

        :raises Unavailable: if it is damaged.
        """
        stamp = files.stamp(self.path)
        if stamp is None or stamp == self._stamp:
            return
        try:
            stored = msgspec.msgpack.decode(self.path.read_bytes(), type=_Stored)
        except msgspec.DecodeError as error:
            raise Unavailable(f"{self.path} is damaged, remove it: {error}") from error
        self._stamp = stamp
        if stored.name == self.name:
            self._values = (np.frombuffer(stored.docnos, np.int64), np.frombuffer(stored.values, np.float32))
            self.generation = stored.generation
        else:
            self._values = (np.zeros(0, np.int64), np.zeros(0, np.float32))
            self.generation = 0

    def compute(self, graph: Graph, catalog: Catalog, generation: int) -> None:
        """Compute by name and keep; blocks, for seconds on a large graph."""
        if self.name != "none" and len(graph.positions):
            values = compute(graph, self.name)
            docnos = catalog.docnos[graph.positions]
            stored = _Stored(self.name, generation, docnos.tobytes(), values.tobytes())
            files.replace(self.path, msgspec.msgpack.encode(stored))
            self.refresh()

    def of(self, docno: int) -> float | None:
        """A document's centrality in [0, 1], 1 being the most central of all; ``None`` if it has none yet."""
        docnos, values = self._values
        place = int(np.searchsorted(docnos, docno))
        return float(values[place]) if place < len(docnos) and docnos[place] == docno else None


def compute(graph: Graph, name: Centrality) -> npt.NDArray[np.float32]:
    """By document, in the graph's order; the names count as nodes and are left out of the result."""
    adjacency = graph.adjacency
    size = len(adjacency)
    rows = sparse.csr_array((adjacency.weights, adjacency.targets, adjacency.offsets), shape=(size, size))
    by_node = MEASURES[name](nx.from_scipy_sparse_array(rows, create_using=nx.DiGraph))
    values = np.array([by_node[node] for node in range(len(graph.positions))], np.float32)
    largest = float(values.max())
    return values / np.float32(largest) if largest > 0 else values


def _spread(graph: nx.DiGraph) -> list[Any]:
    nodes = list(graph)
    return [nodes[place] for place in sorted({int(place) for place in np.linspace(0, len(nodes) - 1, _PIVOTS)})]
