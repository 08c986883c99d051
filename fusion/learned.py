"""Learned fusion: trees correct the order of another strategy.

The trees are learned by LambdaMART (Burges: "From RankNet to LambdaRank to LambdaMART: An Overview", 2010) from judged
queries, on top of the other strategy: ``raw = 10 * its fusion score + the sum of the trees``. They see what sources say
of a document in a form that does not depend on their scales.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from fusion.columns import Candidates
from fusion.rank_fields import Floats
from fusion.source import Sources
from fusion.strategy import Strategy, parse
from fusion.sums import Fused, rank_by_sum
from fusion.trees import Tree, Trees

BASE_FACTOR = 10.0
"""Weight of the other strategy's score, from 0 to 1, beside the trees."""
UNIT = 2.0**-20
"""Of the values of leaves."""
FUSED, COVERAGE = "fused", "coverage"
"""The features that are of no source: the other strategy's score, and how much of the query the graph knows."""
_SOURCE_FEATURE = re.compile(r"(?P<source>.+)\.(?P<kind>score|rank)")
_FORM = re.compile(r"learned\((.+)\)")
_FORMAT = 1
_MAX_FEATURES = 64


class LearnedModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a file of ``trivium tune --learn``.

    :param base: the strategy whose order the trees correct.
    :param features: see :func:`feature_columns`.
    """

    format: int
    base: str
    features: list[str]
    trees: list[Tree]


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """``learned(FILE)``. Printed, it has the hash of the file instead of its name.

    The contributions of sources are those of the other strategy.

    :param lowest: the smallest sum of the trees that could be; ``highest``: the largest.
    """

    name: str
    base: Strategy
    features: tuple[str, ...]
    trees: Trees
    lowest: float
    highest: float

    @classmethod
    def decode(cls, data: bytes) -> Learned:
        """Read a model.

        :raises ValueError: if it is none, or of another format.
        """
        try:
            model = msgspec.json.decode(data, type=LearnedModel)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ValueError(f"not a file of trivium tune --learn: {error}") from None
        if model.format != _FORMAT:
            raise ValueError(f"format {model.format}, allowed is {_FORMAT}")
        if len(model.features) > _MAX_FEATURES:
            raise ValueError(f"{len(model.features)} features, allowed are at most {_MAX_FEATURES}")
        for name in model.features:
            if name not in (FUSED, COVERAGE) and not _SOURCE_FEATURE.fullmatch(name):
                raise ValueError(f"feature {name[:80]!r}, allowed are {FUSED}, {COVERAGE}, SOURCE.score, SOURCE.rank")
        name = f"learned({hashlib.sha256(data).hexdigest()[:16]})"
        trees = Trees.of(model.trees, len(model.features))
        lowest, highest = (UNIT * each for each in trees.bounds)
        return cls(name, parse(model.base), tuple(model.features), trees, lowest, highest)

    def __str__(self) -> str:
        return self.name

    def __call__(self, candidates: Candidates, weights: Mapping[str, float], sources: Sources) -> Fused:
        """Fuse; ties as in :func:`fusion.sums.rank_by_sum`."""
        fused = self.base(candidates, weights, sources)
        scores = scores_by_row(candidates, fused)
        columns = feature_columns(candidates, scores, self.features)
        raw = BASE_FACTOR * scores + UNIT * self.trees.sums(columns)
        rows = rank_by_sum(raw, candidates, sources)
        raw = raw[rows]
        score = np.minimum((raw - self.lowest) / (BASE_FACTOR + self.highest - self.lowest), 1.0)
        return Fused(rows, raw, score, fused.contributions, fused.weights)


def encode(base: str, features: Sequence[str], trees: Sequence[Tree]) -> bytes:
    """A model as :meth:`Learned.decode` reads it."""
    return msgspec.json.encode(LearnedModel(_FORMAT, base, list(features), list(trees))) + b"\n"


def file_of(text: str) -> str | None:
    """FILE of ``learned(FILE)``; ``None`` for any other strategy."""
    match = _FORM.fullmatch(text.strip())
    return match.group(1).strip() if match else None


def feature_names(sources: Iterable[str]) -> list[str]:
    """All features of some sources."""
    return [FUSED, COVERAGE, *(f"{source}.{kind}" for source in sorted(sources) for kind in ("score", "rank"))]


def feature_columns(candidates: Candidates, scores: Floats, names: Sequence[str]) -> Floats:
    """The features of each candidate, shape ``(names, candidates)``, each in [0, 1].

    ``coverage`` is how much of the query a graph knows as entities. ``SOURCE.score`` is a document's score divided by
    the best score of the source, ``SOURCE.rank`` is 1 / rank; both are 0 for a document that the source did not return,
    and for a source that was not searched.

    :param scores: the fusion score of each candidate by the other strategy, which is the feature ``fused``.
    """
    columns = np.zeros((len(names), len(candidates)))
    for column, name in zip(columns, names, strict=True):
        if name == FUSED:
            column[:] = scores
        elif name == COVERAGE:
            column[:] = max(candidates.entity_coverage.values(), default=0.0)
        elif match := _SOURCE_FEATURE.fullmatch(name):
            rows = candidates.rows.get(match["source"])
            if rows is not None and len(rows):
                column[rows] = _values(candidates, match["source"], match["kind"])
    return columns


def scores_by_row(candidates: Candidates, fused: Fused) -> Floats:
    """The fusion score of each candidate."""
    scores = np.zeros(len(candidates))
    scores[fused.rows] = fused.score
    return scores


def _values(candidates: Candidates, source: str, kind: str) -> Floats | float:
    """A feature of each document of a ranking that is not empty."""
    if kind == "rank":
        ranks: Floats = 1.0 / candidates.ranks[source]
        return ranks
    scores = candidates.scores[source]
    return np.maximum(scores, 0.0) / scores[0] if scores[0] > 0 else 0.0
