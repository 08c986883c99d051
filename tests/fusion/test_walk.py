from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion import Adjacency, Walk


def adjacency(edges: list[tuple[int, int]], nodes: int) -> Adjacency:
    """An undirected, unweighted graph with rows that sum to 1."""
    around: list[list[int]] = [[] for _ in range(nodes)]
    for one, other in edges:
        around[one].append(other)
        around[other].append(one)
    offsets = np.cumsum([0, *map(len, around)])
    targets = np.array([target for each in around for target in sorted(each)], np.int32)
    weights = np.array([1 / len(each) for each in around for _ in each], np.float32)
    return Adjacency(offsets, targets, weights)


def walked(walk: Walk, graph: Adjacency, *seeds: int, allowed: np.ndarray | None = None) -> dict[int, float]:
    nodes, mass = walk(graph, np.array(seeds), np.ones(len(seeds), np.float32), allowed)
    return dict(zip(nodes.tolist(), mass.tolist(), strict=True))


def test_one_step_by_hand() -> None:
    """0 - 1 - 2: from 0, all of .7 goes to 1 and .3 comes back."""
    line = adjacency([(0, 1), (1, 2)], 3)
    assert walked(Walk(steps=1), line, 0) == pytest.approx({0: 0.3, 1: 0.7, 2: 0.0})


def test_two_steps_by_hand() -> None:
    """From (.3, .7, 0): node 1 gives half of its .7 to each side, node 0 gives .3 to node 1."""
    line = adjacency([(0, 1), (1, 2)], 3)
    assert walked(Walk(steps=2), line, 0) == pytest.approx({0: 0.7 * 0.35 + 0.3, 1: 0.7 * 0.3, 2: 0.7 * 0.35})


def test_many_steps_are_networkx_personalised_pagerank() -> None:
    graph = nx.karate_club_graph()
    ours = walked(
        Walk(steps=60, hops=9, cap=1_000, follow=0.7),
        adjacency([(a, b) for a, b in graph.edges], len(graph)),
        5,
        30,
    )
    theirs = nx.pagerank(graph, alpha=0.7, personalization={5: 1, 30: 1}, weight=None, tol=1e-10)
    assert ours == pytest.approx(theirs, abs=1e-4)


def test_a_dead_end_leads_home() -> None:
    lonely = adjacency([(1, 2)], 3)
    assert walked(Walk(), lonely, 0) == pytest.approx({0: 1.0})


def test_no_seed_no_walk() -> None:
    nodes, mass = Walk()(adjacency([(0, 1)], 2), np.zeros(0, np.int64), np.zeros(0, np.float32))
    assert len(nodes) == len(mass) == 0


def test_the_cap_keeps_the_most_visited_and_all_seeds() -> None:
    # Node 0 leads to 1..9; 1 and 2 also lead to each other, so nothing else distinguishes them at one step.
    star = adjacency([(0, leaf) for leaf in range(1, 10)], 10)
    found = walked(Walk(cap=4), star, 0)
    assert set(found) == {0, 1, 2, 3}
    assert set(walked(Walk(cap=1), star, 8, 9)) == {8, 9}


def test_a_hub_is_walked_to_but_not_through() -> None:
    hub = adjacency([(0, leaf) for leaf in range(1, 12)], 12)
    assert set(walked(Walk(fanout=10), hub, 1)) == {0, 1}
    assert set(walked(Walk(fanout=11), hub, 1)) == set(range(12))


def test_what_is_not_allowed_is_neither_reached_nor_crossed() -> None:
    line = adjacency([(0, 1), (1, 2), (2, 3)], 4)
    allowed = np.array([True, False, True, True])
    assert set(walked(Walk(hops=4), line, 0, allowed=allowed)) == {0}


@given(st.integers(2, 30), st.data())
def test_mass_is_kept_and_never_negative(nodes: int, data: st.DataObject) -> None:
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] < pair[1])
    edges = data.draw(st.lists(pairs, unique=True, max_size=60))
    seeds = data.draw(st.lists(st.integers(0, nodes - 1), unique=True, min_size=1, max_size=5))
    found = walked(Walk(cap=data.draw(st.integers(1, 40))), adjacency(edges, nodes), *seeds)
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-4)
    assert min(found.values()) >= 0
    assert set(seeds) <= set(found)
