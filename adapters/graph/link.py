"""From the words of a query to the names in the graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from adapters.graph.names import MAX_WORDS, is_stopword, words

_SHORTEST = 3
"""Characters of a single word that may be a name."""
_LONGEST = 256
"""Words of a query that are read."""
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
    tokens = words(query)[:_LONGEST]
    idf = [math.log1p(passages / max(frequency.get(token, 0), 1)) for token in tokens]
    free = [True] * len(tokens)
    seeds: dict[int, float] = {}
    covered = 0.0
    common = max(_COMMON_SHARE * passages, _COMMON_LEAST)
    found = [(-length, start, nodes[name]) for name, start, length in _spans(tokens) if name in nodes]
    for negative_length, start, node in sorted(found):
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


def lookups(query: str) -> tuple[set[str], set[str]]:
    """What :func:`link` will want to know of: possible names, and words."""
    tokens = words(query)[:_LONGEST]
    return {name for name, _, _ in _spans(tokens)}, set(tokens)


def _spans(tokens: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Every span of 1 to 8 words, where it starts and how many words it has."""
    for start in range(len(tokens)):
        name = ""
        for length, token in enumerate(tokens[start : start + MAX_WORDS], start=1):
            name = f"{name} {token}" if name else token
            yield name, start, length


def _telling(word: str, frequency: Mapping[str, int], common: float) -> bool:
    return len(word) >= _SHORTEST and not is_stopword(word) and frequency.get(word, 0) <= common
