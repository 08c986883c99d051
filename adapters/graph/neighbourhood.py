"""What a graph server hands out around the names of a query, as the walk wants it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import msgspec
import numpy as np

from fusion import Adjacency, Walk


@dataclass(slots=True)
class Neighbourhood:
    """Nodes and edges near where a walk starts, numbered: the names that it starts from come first, in their order.

    Each row sums to at most 1, what leads elsewhere being left out. ``wanted`` has id and facts of what may be a hit.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    wanted: dict[int, tuple[str, object]] = field(default_factory=dict)
    sources: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    @classmethod
    def read(cls, rows: Sequence[Mapping[str, Any]], names: Sequence[str], walk: Walk) -> Neighbourhood:
        """From the server's answer. Strengths are scaled as the embedded graph does: by all edges of a node."""
        near = cls({key: number for number, key in enumerate(names)})
        for row in rows:
            document = near._number(row["key"])
            if row["wanted"]:
                near.wanted[document] = row["id"], msgspec.json.decode(row["facts"] or "null")
            mentions = [(key, degree, 1 / sqrt(degree)) for key, degree in row["mentions"]]
            links: dict[str, float] = {}
            for key, weight in row["links"]:
                if key is not None:
                    links[key] = max(weight, links.get(key, 0.0))
            total = row["alone"] + sum(strength for *_, strength in mentions) + sum(links.values())
            if row["alone"]:  # names that nobody else mentions send back what they get, so one node does for all
                names_alone = near._number(f"{row['key']} alone")
                near._edge(document, names_alone, row["alone"] / total)
                near._edge(names_alone, document, 1.0)
            for key, degree, strength in mentions:
                name = near._number(key)
                near._edge(document, name, strength / total)
                if degree <= (walk.seed_fanout if name < len(names) else walk.fanout):
                    # The name's own row: each of its edges weighs the same.
                    near._edge(name, document, 1 / degree)
            for key, weight in links.items():
                near._edge(document, near._number(key), weight / total)
        return near

    def known(self, keys: Sequence[str]) -> list[int]:
        """The nodes of those keys that are here."""
        return [self.numbers[key] for key in keys if key in self.numbers]

    def adjacency(self) -> Adjacency:
        """In compressed sparse rows."""
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
