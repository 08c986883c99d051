"""From the words of a query to the names in the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adapters.graph.names import MAX_WORDS, is_stopword, words

_SHORTEST = 3
"""Characters of a single word that may be a name."""
_LONGEST = 256
"""Words of a query that are read."""
_COMMON_SHARE = 0.02
_COMMON_LEAST = 3
"""A single word that is in more than 2 % of the passages (and in more than 3) is not looked up as a name."""
_NAMED_SHARE = 0.2
"""A single word is a name where a fifth of the passages that hold it mention it as one: not where a heading, or the
start of a sentence, once gave it a capital."""
_NAMES_LEAST, _NAMES_MORE = 0.15, 0.7
"""Of the mass of a walk's start, what names get that carry nothing of the query, and what more if they carry it all."""


@dataclass(frozen=True, slots=True)
class Linked:
    """Nodes that a query names, each with its weight, and the share of the query's information that they carry."""

    seeds: Mapping[int, float]
    coverage: float


def link(
    query: str,
    nodes: Mapping[str, int],
    degree: Callable[[int], int],
    frequency: Mapping[str, int],
    passages: int,
) -> Linked:
    """Match spans of 8 to 1 words, the longest first and none overlapping, exactly against names.

    A seed weighs ``(sum of idf over its words) ** 3`` with ``idf = ln(1 + passages / df)``: of what a query names,
    the rarest says most.

    :param nodes: by name in normal form.
    :param degree: by node, how many passages mention the name, of those that may be known of: a name that none of
        these mention is no name.
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
        if not all(free[span]) or not degree(node):
            continue
        if negative_length == -1:
            word = tokens[start]
            if not _telling(word, frequency, common) or degree(node) < _NAMED_SHARE * frequency.get(word, 0):
                continue
        if (mass := sum(idf[span])) <= 0:
            continue
        seeds[node] = seeds.get(node, 0.0) + mass**3
        free[span] = [False] * -negative_length
        covered += mass
    total = sum(idf)
    return Linked(seeds, covered / total if total else 0.0)


def start(linked: Linked, documents: Sequence[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Where a walk starts: the names of a query, and documents that are known to be near it, the best first.

    The names get ``0.15 + 0.7 * coverage`` of the mass; document ``n`` gets its part of the rest as ``1 / n``. What is
    not there leaves all of it to the other.

    :param documents: nodes, each once.
    :returns: distinct nodes, and the mass of each; the masses sum to 1.
    """
    mass: dict[int, float] = {}
    named = _NAMES_LEAST + _NAMES_MORE * linked.coverage if documents else 1.0
    total = sum(linked.seeds.values())
    for node, weight in linked.seeds.items():
        mass[node] = named * weight / total
    rest = 1.0 - named if linked.seeds else 1.0
    harmonic = sum(1 / place for place in range(1, len(documents) + 1))
    for place, node in enumerate(documents, start=1):
        mass[node] = mass.get(node, 0.0) + rest / place / harmonic
    return np.fromiter(mass, np.int64, len(mass)), np.fromiter(mass.values(), np.float32, len(mass))


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
