"""The centrality of nodes of a graph, by a measure of networkx.

A module of its own, imported when centralities are computed: networkx and scipy take a sixth of the start of a process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
from scipy import sparse

from adapters.ports.graph import Centrality
from fusion.random_walk import Adjacency
from fusion.rank_fields import Ints

_PIVOTS = 64
"""Nodes that betweenness is estimated from (Brandes, Pich 2007): the exact value takes hours on a large graph."""

_MEASURES: Mapping[str, Callable[[nx.DiGraph], Mapping[Any, float]]] = {
    "pagerank": nx.pagerank,
    "degree": nx.degree_centrality,
    "betweenness": lambda graph: nx.betweenness_centrality(graph, k=min(_PIVOTS, len(graph)), seed=0),
    "harmonic": lambda graph: nx.harmonic_centrality(graph, sources=_evenly_spaced_nodes(graph)),
}


def compute(adjacency: Adjacency, documents: Ints, names: Ints, measure: Centrality) -> npt.NDArray[np.float32]:
    """The centrality of each of some documents divided by the largest one; shape (documents,), in [0, 1].

    :param documents: nodes.
    :param names: nodes that count, too, and are left out of the result.
    """
    if not len(documents):
        return np.zeros(0, np.float32)
    size, nodes = len(adjacency), np.concatenate((documents, names))
    rows = sparse.csr_array((adjacency.weights, adjacency.targets, adjacency.offsets), shape=(size, size))
    by_node = _MEASURES[measure](nx.from_scipy_sparse_array(rows[nodes][:, nodes], create_using=nx.DiGraph))
    values = np.array([by_node[node] for node in range(len(documents))], np.float32)
    largest = float(values.max())
    return values / np.float32(largest) if largest > 0 else values


def compute_from_edges(
    edges: Iterable[tuple[str, Iterable[tuple[str, float]]]], measure: Centrality
) -> Mapping[str, float]:
    """The centrality of every node of an undirected graph, on the scale of the measure.

    :param edges: each node with its neighbours and the weights of the edges to them.
    """
    graph = nx.DiGraph()
    for node, neighbours in edges:
        graph.add_node(node)
        for neighbour, weight in neighbours:
            graph.add_edge(node, neighbour, weight=weight)
            graph.add_edge(neighbour, node, weight=weight)
    return _MEASURES[measure](graph) if len(graph) else {}


def _evenly_spaced_nodes(graph: nx.DiGraph) -> list[Any]:
    nodes = list(graph)
    return [nodes[index] for index in sorted({int(index) for index in np.linspace(0, len(nodes) - 1, _PIVOTS)})]
