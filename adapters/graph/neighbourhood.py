"""The neighbourhood of a query that a graph server returned, as a graph to walk on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import msgspec
import numpy as np

from fusion.walk import Adjacency, Walk


@dataclass(slots=True)
class Neighbourhood:
    """Nodes and edges around the seeds of a walk. The seed names come first, in their order.

    Each row sums to at most 1: edges that leave the neighbourhood are left out.

    :param numbers: node by key on the server.
    :param candidates: id and stored rank fields of the documents that pass the query's filter, by node.
    :param sources: of each edge; ``targets`` and ``weights`` are parallel.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    candidates: dict[int, tuple[str, object]] = field(default_factory=dict)
    sources: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    @classmethod
    def read(cls, rows: Sequence[Mapping[str, Any]], names: Sequence[str], walk: Walk) -> Neighbourhood:
        """Read the rows of the statement ``neighbourhood``.

        Weights are scaled as in the embedded graph: by all edges of a node, those that are left out included.

        :param names: keys of the seed names.
        :raises KeyError, TypeError, ValueError: if the rows do not have the form of that statement.
        """
        neighbourhood = cls({key: number for number, key in enumerate(names)})
        for row in rows:
            document = neighbourhood._number(row["key"])
            if row["passes"]:
                neighbourhood.candidates[document] = row["id"], msgspec.json.decode(row["facts"] or "null")
            neighbourhood._add_edges(document, row, len(names), walk)
        return neighbourhood

    def _add_edges(self, document: int, row: Mapping[str, Any], name_count: int, walk: Walk) -> None:
        mentions = [(key, degree, 1 / sqrt(degree)) for key, degree in row["mentions"]]
        links: dict[str, float] = {}
        for key, weight in row["links"]:
            if key is not None:
                links[key] = max(weight, links.get(key, 0.0))
        total = row["single_mentions"] + sum(weight for *_, weight in mentions) + sum(links.values())
        if row["single_mentions"]:
            # Names that only this document mentions return all that they receive, so one node represents them all.
            single_names = self._number(f"{row['key']} single")
            self._edge(document, single_names, row["single_mentions"] / total)
            self._edge(single_names, document, 1.0)
        for key, degree, weight in mentions:
            name = self._number(key)
            self._edge(document, name, weight / total)
            if degree <= (walk.seed_fanout if name < name_count else walk.fanout):
                # The name's own row: each of its edges weighs the same.
                self._edge(name, document, 1 / degree)
        for key, weight in links.items():
            self._edge(document, self._number(key), weight / total)

    def nodes(self, keys: Sequence[str]) -> list[int]:
        """The nodes of those keys that are in the neighbourhood, in order."""
        return [self.numbers[key] for key in keys if key in self.numbers]

    def adjacency(self) -> Adjacency:
        """The edges in compressed sparse rows."""
        sources = np.array(self.sources, np.int64)
        order = np.argsort(sources, kind="stable")
        offsets = np.concatenate(([0], np.cumsum(np.bincount(sources, minlength=len(self.numbers)))))
        return Adjacency(
            offsets.astype(np.int64),
            np.array(self.targets, np.int32)[order],
            np.array(self.weights, np.float32)[order],
        )

    def _edge(self, source: int, target: int, weight: float) -> None:
        self.sources.append(source)
        self.targets.append(target)
        self.weights.append(weight)

    def _number(self, key: str) -> int:
        return self.numbers.setdefault(key, len(self.numbers))
