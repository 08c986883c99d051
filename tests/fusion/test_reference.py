"""Every strategy, boost and collapse against an implementation in plain dictionaries: equal to the last bit.

The reference works on ids, adds in the order of source names, and sorts with Python's ``sorted``. It names the three
sources, where the columns read a :class:`Source`; results are compared with ``==``, never approximately.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion.boosts import boost
from fusion.chunks import collapse
from fusion.columns import Candidates, Ranking
from fusion.concatenate import Concatenate
from fusion.joint_walk import JointWalk
from fusion.provenance import FusedHit, fused_hits
from fusion.rank_fields import RankFields
from fusion.rrf import RRF
from fusion.scores import dbsf, relative_score, weighted_sum
from fusion.strategy import Strategy
from fusion.values import CollapseMode, Contribution, DocumentFields
from tests.fusion.helpers import SOURCES, column, listed, numbered

IDS = tuple("abcdefghij")
NAMES = ("graph", "keyword", "other", "vector")


@dataclass(frozen=True)
class Plain:
    """A ranking in plain Python: ids, scores and ranks, best first."""

    source: str
    ids: tuple[str, ...]
    scores: tuple[float, ...]
    ranks: tuple[int, ...]
    coverage: float = 0.0


@dataclass(frozen=True)
class Reference:
    """All documents, best first. ``contributions`` are by source and index in its ranking."""

    ids: list[str]
    raw: dict[str, float]
    score: dict[str, float]
    rankings: list[Plain]
    contributions: Mapping[str, list[float]]
    weights: Mapping[str, float] = field(default_factory=dict)

    def hits(self) -> list[FusedHit]:
        return [
            FusedHit(
                id_,
                self.raw[id_],
                self.score[id_],
                {ranking.source: self._contribution(ranking, id_) for ranking in self.rankings},
            )
            for id_ in self.ids
        ]

    def _contribution(self, ranking: Plain, id_: str) -> Contribution | None:
        if id_ not in ranking.ids:
            return None
        index = ranking.ids.index(id_)
        return Contribution(
            ranking.ranks[index],
            ranking.scores[index],
            self.weights.get(ranking.source, 1.0),
            self.contributions[ranking.source][index],
        )


Weights = Mapping[str, float]


def in_order(rankings: Sequence[Plain]) -> list[Plain]:
    return sorted(rankings, key=lambda ranking: ranking.source)


def add_up(ordered: Sequence[Plain], contributions: Mapping[str, list[float]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for ranking in ordered:
        for id_, contribution in zip(ranking.ids, contributions[ranking.source], strict=True):
            sums[id_] = sums.get(id_, 0.0) + contribution
    return sums


def ordered_by_sum(sums: Mapping[str, float], rankings: Sequence[Plain]) -> list[str]:
    """The largest sum first; ties by keyword position (or that of the only source), then by id."""
    decides = rankings[0].source if len(rankings) == 1 else "keyword"
    position = next((ranking.ids for ranking in rankings if ranking.source == decides), ())
    ranked = [id_ for id_ in position if id_ in sums]
    ids = [*ranked, *sorted(sums.keys() - set(ranked))]
    ids.sort(key=sums.__getitem__, reverse=True)
    return ids


def reference_sum(
    rankings: Sequence[Plain], contributions: Mapping[str, list[float]], weights: Weights, ceiling: float
) -> Reference:
    ordered = in_order(rankings)
    sums = add_up(ordered, contributions)
    score = {id_: min(value / ceiling, 1.0) if ceiling > 0 else 0.0 for id_, value in sums.items()}
    return Reference(ordered_by_sum(sums, ordered), sums, score, ordered, contributions, weights)


def reference_rrf(k: int, slope: int | None, rankings: Sequence[Plain], weights: Weights) -> Reference:
    weights = {ranking.source: weights.get(ranking.source, 1.0) for ranking in rankings} | {
        ranking.source: weights.get(ranking.source, 1.0) * slope * ranking.coverage
        for ranking in rankings
        if slope is not None and ranking.source == "graph"
    }
    contributions = {
        ranking.source: [weights.get(ranking.source, 1.0) / (k + rank) for rank in ranking.ranks]
        for ranking in rankings
    }
    ceiling = sum(weights.get(ranking.source, 1.0) for ranking in in_order(rankings)) / (k + 1)
    return reference_sum(rankings, contributions, weights, ceiling)


def reference_score_sum(
    scale: Callable[[Plain], list[float]], rankings: Sequence[Plain], weights: Weights
) -> Reference:
    contributions = {
        ranking.source: [weights.get(ranking.source, 1.0) * value for value in scale(ranking)] for ranking in rankings
    }
    ceiling = sum(weights.get(ranking.source, 1.0) for ranking in in_order(rankings))
    return reference_sum(rankings, contributions, weights, ceiling)


def relative(ranking: Plain) -> list[float]:
    if not ranking.scores:
        return []
    low, high = ranking.scores[-1], ranking.scores[0]
    return [(score - low) / (high - low) if high > low else 1.0 for score in ranking.scores]


def distributed(ranking: Plain) -> list[float]:
    if not ranking.scores:
        return []
    spread = 2 * 3.0 * pstdev(ranking.scores)
    if spread == 0:
        return [0.5] * len(ranking.scores)
    low = fmean(ranking.scores) - spread / 2
    return [min(max((score - low) / spread, 0.0), 1.0) for score in ranking.scores]


def comparable(ranking: Plain) -> list[float]:
    if ranking.source == "vector":
        return [min(max(score, 0.0), 1.0) for score in ranking.scores]
    return [1.0 - index / len(ranking.ids) for index in range(len(ranking.ids))]


def reference_concatenate(rankings: Sequence[Plain], weights: Weights) -> Reference:
    priorities = ("keyword", "vector", "graph", "other")
    by_priority = sorted(rankings, key=lambda ranking: priorities.index(ranking.source))
    ids = list(dict.fromkeys(id_ for ranking in by_priority for id_ in ranking.ids))
    score = {id_: (len(ids) - index) / len(ids) for index, id_ in enumerate(ids)}
    contributions = {ranking.source: [0.0] * len(ranking.ids) for ranking in rankings}
    return Reference(ids, score, score, in_order(rankings), contributions, weights)


# x ** 1.5, x ** 2 and x ** 0.5, to the last digit the same on every processor
POWERS: Mapping[str, Callable[[float], float]] = {
    "vector": lambda x: math.sqrt(x) * x,
    "keyword": lambda x: x * x,
    "graph": math.sqrt,
}


def joint_best(strategy: JointWalk, ranking: Plain, weights: Weights) -> float:
    strength = strategy.base + strategy.slope * ranking.coverage if ranking.source == "graph" else 1.0
    return weights.get(ranking.source, 1.0) * strength


def joint_contributions(
    strategy: JointWalk, ranking: Plain, rankings: Sequence[Plain], weights: Weights
) -> list[float]:
    first = ranking.scores[0] if ranking.scores else 0.0
    if first <= 0:
        return [0.0] * len(ranking.ids)
    best, power = joint_best(strategy, ranking, weights), POWERS.get(ranking.source, lambda x: x)
    values = [best * power(score / first) if score > 0 else 0.0 for score in ranking.scores]
    known = {id_ for other in rankings if other.source != "graph" for id_ in other.ids[:100]}
    if ranking.source != "graph" or ranking.coverage >= 0.1 or not known:
        return values
    return [
        value if id_ in known else value * (ranking.coverage / 0.1)
        for id_, value in zip(ranking.ids, values, strict=True)
    ]


def reference_joint_walk(strategy: JointWalk, rankings: Sequence[Plain], weights: Weights) -> Reference:
    contributions = {ranking.source: joint_contributions(strategy, ranking, rankings, weights) for ranking in rankings}
    ceiling = sum(joint_best(strategy, ranking, weights) for ranking in in_order(rankings))
    return reference_sum(rankings, contributions, weights, ceiling)


def reference_boost(
    fused: Reference, ids: Sequence[str], factors: Mapping[str, Mapping[str, float]]
) -> list[tuple[str, float]]:
    """The final score of each of ``ids``, best first."""
    products: dict[str, float] = {}
    for name in sorted(factors):
        for id_, factor in factors[name].items():
            products[id_] = products.get(id_, 1.0) * factor
    scores = {id_: fused.score[id_] * products.get(id_, 1.0) for id_ in ids}
    return [(id_, scores[id_]) for id_ in (ordered_by_sum(scores, fused.rankings) if products else ids)]


def reference_collapse(
    ids: Sequence[str], fields: Mapping[str, DocumentFields], mode: CollapseMode, radius: int
) -> tuple[list[str], dict[str, str]]:
    """The ids that stay, and for each other id the one that replaces it."""
    parent = {id_: fields[id_].parent for id_ in ids if id_ in fields and fields[id_].parent is not None}
    if mode == "none" or not parent:
        return list(ids), {}
    results: list[str] = []
    into: dict[str, str] = {}
    best: dict[str | None, dict[int | None, str]] = {}
    for id_ in ids:
        if id_ not in parent:
            if id_ not in parent.values():
                results.append(id_)
            continue
        siblings, chunk = best.setdefault(parent[id_], {}), fields[id_].chunk
        if mode == "parent":
            better = next(iter(siblings.values()), None)
        elif chunk is None:
            better = siblings.get(None)
        else:
            better = next((each for at, each in siblings.items() if at is not None and abs(at - chunk) <= radius), None)
        if better is None:
            siblings[chunk] = id_
            results.append(id_)
        else:
            into[id_] = better
    into |= {id_: next(iter(best[id_].values())) for id_ in ids if id_ not in parent and id_ in best}
    return results, into


# What is compared

weights = st.dictionaries(st.sampled_from(NAMES), st.floats(0, 10) | st.sampled_from((0.0, 0.1, 1.0, 3.0)))
scores = st.floats(-1, 1) | st.floats(0, 40) | st.sampled_from((-0.25, 0.0, 0.1, 0.2, 0.3, 8.0))


@st.composite
def plain_rankings(draw: st.DrawFn) -> list[Plain]:
    """Rankings of some sources; the ranks are 1, 2, 3 or, as after merging collections, any."""
    rankings = []
    for source in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        ids = draw(st.permutations(IDS))[: draw(st.integers(0, len(IDS)))]
        count = len(ids)
        values = sorted(draw(st.lists(scores, min_size=count, max_size=count)), reverse=True)
        any_ranks = st.lists(st.integers(1, 300), min_size=count, max_size=count)
        ranks = draw(st.just(list(range(1, count + 1))) | any_ranks)
        rankings.append(
            Plain(source, tuple(ids), tuple(values), tuple(ranks), draw(st.floats(0, 1) | st.floats(0, 0.1)))
        )
    return rankings


def by_id(rankings: Sequence[Plain]) -> list[Ranking]:
    return [Ranking.of_ids(each.source, each.ids, each.scores, each.coverage, ranks=each.ranks) for each in rankings]


joint_walks = st.builds(JointWalk, st.integers(0, 100), st.integers(0, 100), st.integers(1, 12))
cases = st.one_of(
    st.tuples(st.integers(1, 10_000), st.none() | st.integers(0, 100)).map(
        lambda values: (RRF(*values), lambda *arguments: reference_rrf(*values, *arguments))
    ),
    st.just((Concatenate(), reference_concatenate)),
    st.just((relative_score(), lambda *arguments: reference_score_sum(relative, *arguments))),
    st.just((dbsf(), lambda *arguments: reference_score_sum(distributed, *arguments))),
    st.just((weighted_sum(), lambda *arguments: reference_score_sum(comparable, *arguments))),
    joint_walks.map(lambda walk: (walk, lambda *arguments: reference_joint_walk(walk, *arguments))),
)
"""A strategy and its reference."""

Case = tuple[Strategy, Callable[[Sequence[Plain], Weights], Reference]]


@pytest.mark.parametrize("join", ["by id", "by number"])
@given(cases, plain_rankings(), weights)
def test_every_strategy_equals_its_reference(
    join: str, case: Case, rankings: list[Plain], weights: dict[str, float]
) -> None:
    strategy, reference = case
    columns = by_id(rankings) if join == "by id" else numbered(by_id(rankings), IDS[::-1])
    candidates = Candidates.of(columns)
    assert fused_hits(candidates, strategy(candidates, weights, SOURCES)) == reference(rankings, weights).hits()


@given(joint_walks, plain_rankings(), weights)
def test_the_seeds_of_the_walk_equal_their_reference(
    walk: JointWalk, rankings: list[Plain], weights: dict[str, float]
) -> None:
    candidates = Candidates.of(by_id(rankings))
    expected = reference_joint_walk(walk, rankings, weights).ids[: walk.max_seeds]
    assert candidates.ids(walk.seeds(candidates, weights, SOURCES)) == expected


factors = st.dictionaries(
    st.sampled_from(("centrality", "importance", "recency", "relationship")),
    st.dictionaries(st.sampled_from(IDS), st.floats(0.5, 2.0) | st.sampled_from((0.5, 1.0, 1.25, 2.0))),
)


@given(cases, plain_rankings(), weights, factors, st.sampled_from((0.0, 0.1, 0.5)))
def test_boosting_equals_its_reference(
    case: Case,
    rankings: list[Plain],
    weights: dict[str, float],
    factors: dict[str, dict[str, float]],
    min_score: float,
) -> None:
    strategy, reference = case
    candidates = Candidates.of(by_id(rankings))
    fused = strategy(candidates, weights, SOURCES).above(min_score)
    columns = {name: column(candidates, by_document) if by_document else None for name, by_document in factors.items()}
    boosted = boost(candidates, fused, columns, SOURCES)
    expected = reference(rankings, weights)
    above = [id_ for id_ in expected.ids if expected.score[id_] >= min_score]
    assert list(zip(candidates.ids(boosted.rows), boosted.score.tolist(), strict=True)) == reference_boost(
        expected, above, factors
    )


chunks = st.builds(DocumentFields, st.none() | st.sampled_from((*IDS[:4], "p", "q")), st.none() | st.integers(0, 6))
MODES: tuple[CollapseMode, ...] = ("none", "parent", "window")


@pytest.mark.parametrize("mode", MODES)
@given(st.permutations(IDS), st.integers(0, 10), st.dictionaries(st.sampled_from(IDS), chunks), st.integers(0, 3))
def test_collapsing_equals_its_reference(
    mode: CollapseMode, order: list[str], count: int, fields: dict[str, DocumentFields], radius: int
) -> None:
    """The case of one ranking, and of some rows of candidates with a table of their own, in any order."""
    ids = order[:count]
    expected = reference_collapse(ids, fields, mode, radius)
    candidates = listed({id_: fields[id_] for id_ in ids if id_ in fields}, *ids)
    rows = {id_: row for row, id_ in enumerate(ids)}
    shared = numbered(
        [Ranking.of_ids("keyword", IDS, [0.0] * len(IDS))], IDS, RankFields.of(list(map(fields.get, IDS)))
    )
    every = Candidates.of(shared)
    for chosen, row_of in ((candidates, rows), (every, {id_: row for row, id_ in enumerate(IDS)})):
        outcome = collapse(chosen, np.array([row_of[id_] for id_ in ids], np.int64), mode, radius)
        id_of = {row: id_ for id_, row in row_of.items()}
        into = {id_of[row]: id_of[other] for row, other in outcome.collapsed_into.items()}
        assert (chosen.ids(outcome.rows), into) == expected
