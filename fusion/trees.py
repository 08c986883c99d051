"""Regression trees that are evaluated for all documents at once.

Each inner node whose test fails rules out the leaves of its left subtree. The first leaf that is not ruled out is the
one that the document reaches: Lucchese et al.: "QuickScorer: A Fast Algorithm to Rank Documents with Additive Ensembles
of Regression Trees", SIGIR 2015.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from fusion.rank_fields import Floats, Ints

MAX_TREES, MAX_LEAVES = 50, 8
_MAX_VALUE = 2**40
_ALL = 2**MAX_LEAVES - 1
_FIRST_LEAF = np.array([(~each & (each + 1)).bit_length() - 1 for each in range(_ALL)])
"""The first leaf that is not ruled out, by the bits of those that are. Never all of them are."""


class Tree(Struct, frozen=True, forbid_unknown_fields=True):
    """A tree as LightGBM numbers it. Node 0 is the root.

    Node ``n`` continues with ``left[n]`` if the value of ``features[n]`` is at most ``thresholds[n]``, and with
    ``right[n]`` otherwise. A negative child ``c`` is the leaf ``~c``. ``values`` are those of the leaves.
    """

    features: list[int]
    thresholds: list[float]
    left: list[int]
    right: list[int]
    values: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """The sum of some trees. The values of leaves are whole numbers, so that sums are equal on every processor.

    The first three have a row for each node, padded to 7, and a column for each tree. ``left_leaves`` has a bit for
    each leaf of the left subtree. ``values`` has a row for each tree and a column for each leaf, from left to right.
    """

    features: Ints
    thresholds: Floats
    left_leaves: npt.NDArray[np.uint8]
    values: Ints

    @classmethod
    def of(cls, trees: Sequence[Tree], features: int) -> Trees:
        """Check and combine trees.

        :param features: number of features.
        :raises ValueError: if there are no trees or more than 50, or one is no tree of at most 8 leaves.
        """
        if not 1 <= len(trees) <= MAX_TREES:
            raise ValueError(f"{len(trees)} trees, allowed are 1 to {MAX_TREES}")
        shape = (MAX_LEAVES - 1, len(trees))
        combined = cls(
            np.zeros(shape, np.int64),
            np.full(shape, np.inf),
            np.zeros(shape, np.uint8),
            np.zeros((len(trees), MAX_LEAVES), np.int64),
        )
        for column, tree in enumerate(trees):
            try:
                combined._add(tree, column, features)
            except ValueError as error:
                raise ValueError(f"tree {column + 1}: {error}") from None
        return combined

    def _add(self, tree: Tree, column: int, features: int) -> None:
        nodes = len(tree.features)
        if not nodes == len(tree.thresholds) == len(tree.left) == len(tree.right) == len(tree.values) - 1:
            raise ValueError("the numbers of nodes and leaves do not belong together")
        if nodes >= MAX_LEAVES:
            raise ValueError(f"{nodes + 1} leaves, allowed are 1 to {MAX_LEAVES}")
        if any(not 0 <= each < features for each in tree.features):
            raise ValueError(f"a feature is not in 0 to {features - 1}")
        if not all(map(isfinite, tree.thresholds)):
            raise ValueError("a threshold is not a finite number")
        if any(abs(each) > _MAX_VALUE for each in tree.values):
            raise ValueError(f"a value is not in {-_MAX_VALUE} to {_MAX_VALUE}")
        self.features[:nodes, column], self.thresholds[:nodes, column] = tree.features, tree.thresholds
        leaves = list(_leaves(tree, 0 if nodes else ~0, set()))
        if len(leaves) != len(tree.values):
            raise ValueError("not every leaf is reached")
        self.values[column] = tree.values[leaves[0]]  # also of those that do not exist, so that bounds are right
        self.values[column, : len(leaves)] = [tree.values[leaf] for leaf in leaves]
        for node in range(nodes):
            left = _leaves(tree, tree.left[node], set())
            self.left_leaves[node, column] = sum(1 << leaves.index(leaf) for leaf in left)

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest sum that could be."""
        return int(self.values.min(axis=1).sum()), int(self.values.max(axis=1).sum())

    def sums(self, columns: Floats) -> Ints:
        """The sum of the leaves that each document reaches.

        :param columns: the features, shape ``(features, documents)``.
        """
        fails = (columns[self.features] > self.thresholds[:, :, np.newaxis]).view(np.uint8)
        ruled_out = np.bitwise_or.reduce(fails * self.left_leaves[:, :, np.newaxis], axis=0)
        first = MAX_LEAVES * np.arange(len(self.values))[:, np.newaxis]
        sums: Ints = self.values.ravel().take(first + _FIRST_LEAF.take(ruled_out)).sum(axis=0)
        return sums


def _leaves(tree: Tree, node: int, visited: set[int]) -> Iterator[int]:
    """The leaves below a node, from left to right.

    :raises ValueError: if a node or leaf does not exist, or has two parents.
    """
    exists = ~node < len(tree.values) if node < 0 else node < len(tree.features)
    if not exists or node in visited:
        raise ValueError(f"{'leaf' if node < 0 else 'node'} {~node if node < 0 else node} is missing or in a circle")
    visited.add(node)
    if node < 0:
        yield ~node
    else:
        yield from _leaves(tree, tree.left[node], visited)
        yield from _leaves(tree, tree.right[node], visited)
