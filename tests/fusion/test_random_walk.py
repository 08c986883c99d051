from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion import random_walk, walk_numpy
from fusion.random_walk import Adjacency, Walk, WalkScratch

INSTALLED = random_walk.walk
"""The compiled implementation, unless the package was built without a C compiler."""


@pytest.fixture(autouse=True, params=[INSTALLED, walk_numpy.walk], ids=["installed", "numpy"])
def implementation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test with each implementation. Not by ``monkeypatch``, which Hypothesis refuses."""
    random_walk.walk = request.param
    yield
    random_walk.walk = INSTALLED


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
    nodes, mass = walk(graph, np.array(seeds), np.ones(len(seeds), np.float32), WalkScratch(), allowed)
    return dict(zip(nodes.tolist(), mass.tolist(), strict=True))


def test_one_step_by_hand() -> None:
    """0 - 1 - 2: from 0, all of .7 goes to 1 and .3 comes back."""
    line = adjacency([(0, 1), (1, 2)], 3)
    assert walked(Walk(steps=1), line, 0) == pytest.approx({0: 0.3, 1: 0.7, 2: 0.0})


def test_two_steps_by_hand() -> None:
    """From (.3, .7, 0): node 1 gives half of its .7 to each side, node 0 gives .3 to node 1."""
    line = adjacency([(0, 1), (1, 2)], 3)
    assert walked(Walk(steps=2), line, 0) == pytest.approx({0: 0.7 * 0.35 + 0.3, 1: 0.7 * 0.3, 2: 0.7 * 0.35})


def test_many_steps_equal_personalised_pagerank_of_networkx() -> None:
    graph = nx.karate_club_graph()
    probabilities = walked(
        Walk(steps=60, hops=9, cap=1_000, follow=0.7),
        adjacency([(a, b) for a, b in graph.edges], len(graph)),
        5,
        30,
    )
    expected = nx.pagerank(graph, alpha=0.7, personalization={5: 1, 30: 1}, weight=None, tol=1e-10)
    assert probabilities == pytest.approx(expected, abs=1e-4)


def test_a_dead_end_leads_back_to_the_seed() -> None:
    isolated = adjacency([(1, 2)], 3)
    assert walked(Walk(), isolated, 0) == pytest.approx({0: 1.0})


def test_a_walk_without_seeds_reaches_nothing() -> None:
    nodes, mass = Walk()(adjacency([(0, 1)], 2), np.zeros(0, np.int64), np.zeros(0, np.float32), WalkScratch())
    assert len(nodes) == len(mass) == 0


def test_under_the_cap_the_most_visited_nodes_and_all_seeds_stay() -> None:
    # Node 0 leads to 1..9; 1 and 2 also lead to each other, so nothing else distinguishes them at one step.
    star = adjacency([(0, leaf) for leaf in range(1, 10)], 10)
    assert set(walked(Walk(cap=4), star, 0)) == {0, 1, 2, 3}
    assert set(walked(Walk(cap=1), star, 8, 9)) == {8, 9}


@pytest.mark.parametrize(("cap", "reached"), [(3, {0, 1, 3}), (4, {0, 1, 3, 4}), (5, {0, 1, 2, 3, 4})])
def test_beyond_the_cap_those_nodes_are_reached_that_receive_the_largest_mass(cap: int, reached: set[int]) -> None:
    """Node 0 has three quarters of the mass: 3 receives .725, 4 receives .2, 2 receives .075."""
    offsets, targets = np.array([0, 2, 4, 4, 4, 4]), np.array([2, 3, 3, 4], np.int32)
    graph = Adjacency(offsets, targets, np.array([0.1, 0.9, 0.2, 0.8], np.float32))
    seeds, mass = np.array([0, 1]), np.array([3.0, 1.0], np.float32)
    nodes, _ = Walk(cap=cap)(graph, seeds, mass, WalkScratch())
    assert set(nodes.tolist()) == reached


def test_a_hub_is_reached_but_not_passed_through() -> None:
    hub = adjacency([(0, leaf) for leaf in range(1, 12)], 12)
    assert set(walked(Walk(fanout=10), hub, 1)) == {0, 1}
    assert set(walked(Walk(fanout=11), hub, 1)) == set(range(12))


def test_a_node_that_is_not_allowed_is_neither_reached_nor_passed_through() -> None:
    line = adjacency([(0, 1), (1, 2), (2, 3)], 4)
    allowed = np.array([True, False, True, True])
    assert set(walked(Walk(hops=4), line, 0, allowed=allowed)) == {0}


@given(st.integers(2, 30), st.data())
def test_probabilities_sum_to_one_and_are_never_negative(nodes: int, data: st.DataObject) -> None:
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] < pair[1])
    edges = data.draw(st.lists(pairs, unique=True, max_size=60))
    seeds = data.draw(st.lists(st.integers(0, nodes - 1), unique=True, min_size=1, max_size=5))
    probabilities = walked(Walk(cap=data.draw(st.integers(1, 40))), adjacency(edges, nodes), *seeds)
    assert sum(probabilities.values()) == pytest.approx(1.0, abs=1e-4)
    assert min(probabilities.values()) >= 0
    assert set(seeds) <= set(probabilities)


@given(st.lists(st.tuples(st.integers(2, 12), st.integers(0, 11), st.integers(0, 11)), min_size=1, max_size=6))
def test_a_scratch_that_earlier_walks_used_changes_nothing(walks: list[tuple[int, int, int]]) -> None:
    """Walks on graphs of different sizes, one after another: circles with one more edge each."""
    scratch = WalkScratch()
    for nodes, seed, end in walks:
        edges = [(node, (node + 1) % nodes) for node in range(nodes)]
        if end % nodes != seed % nodes:
            edges.append((seed % nodes, end % nodes))
        graph, seeds = adjacency(edges, nodes), np.array([seed % nodes])
        reused = Walk()(graph, seeds, np.ones(1, np.float32), scratch)
        new_scratch = Walk()(graph, seeds, np.ones(1, np.float32), WalkScratch())
        assert [column.tolist() for column in reused] == [column.tolist() for column in new_scratch]
        assert (scratch.index_of(nodes) == -1).all()


@given(st.integers(2, 40), st.data())
def test_the_compiled_walk_equals_the_one_by_numpy_to_the_last_bit(nodes: int, data: st.DataObject) -> None:
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] < pair[1])
    edges = data.draw(st.lists(pairs, max_size=120))
    graph = adjacency(edges, nodes)
    seeds = data.draw(st.lists(st.integers(0, nodes - 1), unique=True, min_size=1, max_size=6))
    mass = np.array(data.draw(st.lists(st.floats(0.01, 9), min_size=len(seeds), max_size=len(seeds))), np.float64)
    allowed = np.array(data.draw(st.lists(st.integers(0, 1), min_size=nodes, max_size=nodes)), np.uint8)
    limits = data.draw(st.tuples(st.integers(0, 3), st.integers(1, 45), st.integers(0, 9), st.integers(0, 12)))
    index = np.full(nodes, -1, np.int32)
    arguments = (graph.offsets, graph.targets, graph.weights, np.array(seeds), mass / mass.sum(), index)
    choices = (data.draw(st.sampled_from((allowed, allowed[:0]))), data.draw(st.integers(0, 6)), 0.7, *limits)
    compiled, by_numpy = (each(*arguments, *choices) for each in (INSTALLED, walk_numpy.walk))
    assert [column.tobytes() for column in compiled] == [column.tobytes() for column in by_numpy]
    assert (index == -1).all()
