"""From the words of a query to the names in the graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from adapters.graph.names import MAX_WORDS, is_stopword, words

_SHORTEST = 3
"""Characters of a single word that may be a name."""
_COMMON_SHARE = 0.02
_COMMON_LEAST = 3
"""A single word that is in more than 2 % of the passages (and in more than 3) is not looked up as a name."""


@dataclass(frozen=True, slots=True)
class Linked:
    """Nodes that a query names, each with its weight, and the share of the query's information that they carry."""

    seeds: Mapping[int, float]
    coverage: float


def link(query: str, nodes: Mapping[str, int], frequency: Mapping[str, int], passages: int) -> Linked:
    """Match spans of 8 to 1 words, the longest first and none overlapping, exactly against names.

    A seed weighs ``(sum of idf over its words) ** 3`` with ``idf = ln(1 + passages / df)``: of what a query names,
    the rarest says most.

    :param nodes: by name in normal form.
    :param frequency: by word, how many passages hold it.
    """
    tokens = words(query)[:256]
    idf = [math.log1p(passages / max(frequency.get(token, 0), 1)) for token in tokens]
    free = [True] * len(tokens)
    seeds: dict[int, float] = {}
    covered = 0.0
    common = max(_COMMON_SHARE * passages, _COMMON_LEAST)
    for negative_length, start, node in sorted(_spans(tokens, nodes)):
        span = slice(start, start - negative_length)
        if not all(free[span]):
            continue
        if negative_length == -1 and not _telling(tokens[start], frequency, common):
            continue
        mass = sum(idf[span])
        seeds[node] = seeds.get(node, 0.0) + mass**3
        free[span] = [False] * -negative_length
        covered += mass
    total = sum(idf)
    return Linked(seeds, covered / total if total else 0.0)


def _spans(tokens: Sequence[str], nodes: Mapping[str, int]) -> Iterator[tuple[int, int, int]]:
    """Every span that is a name: its length, negated so that the longest sorts first, its start, its node."""
    for start in range(len(tokens)):
        name = ""
        for length, token in enumerate(tokens[start : start + MAX_WORDS], start=1):
            name = f"{name} {token}" if name else token
            if (node := nodes.get(name)) is not None:
                yield -length, start, node


def _telling(word: str, frequency: Mapping[str, int], common: float) -> bool:
    return len(word) >= _SHORTEST and not is_stopword(word) and frequency.get(word, 0) <= common
