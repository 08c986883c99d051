"""The fallback if a fusion strategy raises: the sources one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fusion.columns import Candidates
from fusion.source import Sources, described
from fusion.sums import Fused


@dataclass(frozen=True, slots=True)
class Concatenate:
    """``concatenate()``: all of the first source by ``fallback_priority``, then what is new in the second, and so on.

    ``fusion_score`` falls in equal steps from 1.0: it expresses only the order.
    """

    def __str__(self) -> str:
        return "concatenate()"

    def __call__(self, candidates: Candidates, weights: Mapping[str, float], sources: Sources) -> Fused:
        """Concatenate and deduplicate; ``weights`` are displayed and change nothing."""
        by_priority = sorted(candidates.sources, key=lambda name: (described(name, sources).fallback_priority, name))
        every = np.concatenate([np.zeros(0, np.int64), *(candidates.rows[name] for name in by_priority)])
        _, first = np.unique(every, return_index=True)
        rows = every[np.sort(first)]
        score = (len(rows) - np.arange(len(rows))) / max(len(rows), 1)
        nothing = {name: np.zeros(len(candidates.rows[name])) for name in candidates.sources}
        return Fused(rows, score, score, nothing, weights)
