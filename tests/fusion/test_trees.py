from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion.trees import MAX_LEAVES, Tree, Trees

FEATURES = 3
GOOD: dict[str, Any] = {
    "features": [0, 1],
    "thresholds": [0.5, 0.25],
    "left": [1, ~0],
    "right": [~2, ~1],
    "values": [10, 20, 30],
}


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Trees of every shape: leaves of a single one are split, one after the other."""
    inner: list[list[int]] = []
    parents: list[tuple[int, int] | None] = [None]  # of each leaf: the node, and 0 for left or 1 for right
    for _ in range(draw(st.integers(0, MAX_LEAVES - 1))):
        leaf = draw(st.integers(0, len(parents) - 1))
        node = len(inner)
        if parent := parents[leaf]:
            inner[parent[0]][parent[1]] = node
        inner.append([~leaf, ~len(parents)])
        parents[leaf] = (node, 0)
        parents.append((node, 1))
    numbers = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    return Tree(
        [draw(st.integers(0, FEATURES - 1)) for _ in inner],
        [draw(numbers) for _ in inner],
        [children[0] for children in inner],
        [children[1] for children in inner],
        [draw(st.integers(-1_000, 1_000)) for _ in parents],
    )


def walked(tree: Tree, row: list[float]) -> int:
    """The value of the leaf that a row reaches, node by node."""
    node = 0 if tree.features else ~0
    while node >= 0:
        is_left = row[tree.features[node]] <= tree.thresholds[node]
        node = (tree.left if is_left else tree.right)[node]
    return tree.values[~node]


@given(
    st.lists(trees(), min_size=1, max_size=5),
    st.lists(st.lists(st.sampled_from([0.0, 0.2, 0.25, 0.3, 0.5, 0.9, 1.0]), min_size=3, max_size=3), max_size=9),
)
def test_sums_are_those_of_a_walk_from_node_to_node(drawn: list[Tree], rows: list[list[float]]) -> None:
    combined = Trees.of(drawn, FEATURES)
    sums = combined.sums(np.array(rows, np.float64).reshape(-1, FEATURES).T).tolist()
    assert sums == [sum(walked(tree, row) for tree in drawn) for row in rows]
    low, high = combined.bounds
    assert all(low <= each <= high for each in sums)


def test_the_bounds_are_reached() -> None:
    combined = Trees.of([Tree(**GOOD), Tree([2], [0.5], [~0], [~1], [-7, -3])], FEATURES)
    assert combined.bounds == (10 - 7, 30 - 3)
    assert combined.sums(np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]])).tolist() == [3, 27]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"values": [1, 2]}, "the numbers of nodes and leaves do not belong together"),
        ({"left": [1]}, "the numbers of nodes and leaves do not belong together"),
        ({"features": [0, 3]}, "a feature is not in 0 to 2"),
        ({"features": [0, -1]}, "a feature is not in 0 to 2"),
        ({"thresholds": [0.5, float("nan")]}, "a threshold is not a finite number"),
        ({"values": [1, 2, 2**41]}, "a value is not in"),
        ({"left": [0, ~0]}, "node 0 is missing or in a circle"),
        ({"left": [5, ~0]}, "node 5 is missing or in a circle"),
        ({"right": [~3, ~1]}, "leaf 3 is missing or in a circle"),
        ({"right": [~1, ~1]}, "leaf 1 is missing or in a circle"),
        ({"left": [~0, ~0]}, "not every leaf is reached"),
        (
            {
                "features": [0] * 8,
                "thresholds": [0.5] * 8,
                "left": [1, 2, 3, 4, 5, 6, 7, ~0],
                "right": [~1, ~2, ~3, ~4, ~5, ~6, ~7, ~8],
                "values": [0] * 9,
            },
            "9 leaves, allowed are 1 to 8",
        ),
    ],
)
def test_what_is_no_tree_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^tree 2: {message}"):
        Trees.of([Tree(**GOOD), Tree(**{**GOOD, **changed})], FEATURES)


@pytest.mark.parametrize("count", [0, 51])
def test_the_number_of_trees_is_bounded(count: int) -> None:
    with pytest.raises(ValueError, match=f"^{count} trees, allowed are 1 to 50"):
        Trees.of([Tree(**GOOD)] * count, FEATURES)
