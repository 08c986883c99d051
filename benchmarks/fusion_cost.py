"""``make bench-fusion``: time of fusing three rankings of 100 documents, with boosts and the provenance of a page,
beside reciprocal rank fusion in a dictionary, without boosts or provenance. ``learned`` is the joint walk with 50 trees
of 8 leaves.

The rankings share one table of documents, as those of the embedded engine do; two boosts apply to every candidate.
Exit code 1 if the goal is missed.
"""

from __future__ import annotations

import random
import timeit
from collections.abc import Callable

import numpy as np

from adapters.model.sources import SOURCES
from benchmarks.claims import out, report
from fusion.boosts import Factors, boost, importance, recency
from fusion.columns import Candidates, IdTable, Ranking
from fusion.joint_walk import JointWalk
from fusion.learned import Learned, encode, feature_names
from fusion.provenance import FusedHit, fused_hits
from fusion.rank_fields import RankFields
from fusion.rrf import RRF
from fusion.strategy import Strategy
from fusion.trees import MAX_LEAVES, MAX_TREES, Tree

_DOCUMENTS, _DEPTH, _PAGE = 250, 100, 10
_MAX_OF_DICTIONARY = 4.0
_RUNS, _ROUNDS = 1_000, 15


def main() -> None:
    """Measure each strategy."""
    by_name = {source.name: source for source in SOURCES}
    rng = np.random.default_rng(1)
    table = IdTable(
        tuple(f"document-{number}" for number in range(_DOCUMENTS)),
        RankFields(
            np.full(_DOCUMENTS, -1), np.full(_DOCUMENTS, -1), rng.random(_DOCUMENTS), rng.random(_DOCUMENTS) * 10, ()
        ),
    )
    rankings = [
        Ranking.of_docs(name, rng.permutation(_DOCUMENTS)[:_DEPTH], np.sort(rng.random(_DEPTH))[::-1], table)
        for name in by_name
    ]

    def fuse(strategy: Strategy) -> list[FusedHit]:
        candidates = Candidates.of(rankings)
        fused = strategy(candidates, {}, by_name)
        assert candidates.fields  # noqa: S101  # every document has some
        factors: Factors = {
            "importance": importance(candidates.fields.importance),
            "recency": recency(candidates.fields.created_at),
        }
        boosted = boost(candidates, fused, factors, by_name)
        return fused_hits(candidates, fused, boosted.rows[:_PAGE])

    def join() -> Candidates:
        return Candidates.of(rankings)

    names = [ranking.ids for ranking in rankings]

    def dictionary() -> list[tuple[str, float]]:
        sums: dict[str, float] = {}
        for ids in names:
            for rank, id_ in enumerate(ids, start=1):
                sums[id_] = sums.get(id_, 0.0) + 1 / (60 + rank)
        return sorted(sums.items(), key=lambda item: -item[1])[:_PAGE]

    def rrf() -> list[FusedHit]:
        return fuse(RRF())

    def joint_walk() -> list[FusedHit]:
        return fuse(JointWalk())

    trees = _trees()

    def learned() -> list[FusedHit]:
        return fuse(trees)

    times = {function.__name__: _us(function) for function in (dictionary, join, rrf, joint_walk, learned)}
    for name, us in times.items():
        out.print(f"{name}: {us:.0f} µs")
    ratio = times["rrf"] / times["dictionary"]
    claim = f"RRF with boosts and the provenance of {_PAGE}: at most {_MAX_OF_DICTIONARY:g} times a dictionary"
    raise SystemExit(0 if report(ratio <= _MAX_OF_DICTIONARY, claim, f"{ratio:.1f} times") else 1)


def _trees() -> Learned:
    """As many trees, of as many leaves, as a model may have."""
    dice, names, nodes = random.Random(0), feature_names(source.name for source in SOURCES), MAX_LEAVES - 1
    trees = [
        Tree(
            [dice.randrange(len(names)) for _ in range(nodes)],
            [dice.random() for _ in range(nodes)],
            [1, 3, 5, ~0, ~2, ~4, ~6],
            [2, 4, 6, ~1, ~3, ~5, ~7],
            [dice.randrange(1_000) for _ in range(MAX_LEAVES)],
        )
        for _ in range(MAX_TREES)
    ]
    return Learned.decode(encode(str(JointWalk()), names, trees))


def _us(function: Callable[[], object]) -> float:
    """The fastest of several rounds, in µs per call: the others were disturbed."""
    return min(timeit.repeat(function, number=_RUNS, repeat=_ROUNDS)) / _RUNS * 1e6


if __name__ == "__main__":
    main()
