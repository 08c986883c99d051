"""Entity linking: from the words of a query to names in the graph, and from these to the seeds of a walk.

What is in this process is looked up as it is needed. From a graph server the counts of all words and possible names of
a query are read at once: see :func:`candidate_names`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adapters.graph.names import MAX_WORDS, is_stopword, words

_MIN_NAME_CHARS = 3
"""Minimum length of a single word that may be a name."""
_MAX_QUERY_WORDS = 256
"""Later words of a query are ignored."""
MAX_FREQUENCY_RATIO = 0.02
MIN_COMMON_FREQUENCY = 3
"""A single word in more than 2 % of the passages (and in more than 3) is too common to be searched as a name."""
MIN_MENTION_RATIO = 0.2
"""A single word is a name only if at least a fifth of the passages that contain it mention it as a name. It may have
been capitalised once by chance, in a heading or at the start of a sentence."""
_NAMES_MASS_BASE, _NAMES_MASS_SLOPE = 0.15, 0.7
"""The names' fraction of the mass of a walk's seeds, if documents are seeds too: 0.15 + 0.7 * entity coverage."""


@dataclass(frozen=True, slots=True)
class LinkedEntities:
    """The entities that a query mentions.

    :param seeds: weight by node, positive.
    :param entity_coverage: the fraction of the query's information that their names carry, in [0, 1]; less for a name
        whose words often occur with another meaning.
    """

    seeds: Mapping[int, float]
    entity_coverage: float


def link_entities(
    query: str,
    nodes: Mapping[str, int],
    degree: Callable[[int], int],
    frequency: Mapping[str, int],
    passages: int,
) -> LinkedEntities:
    """Match spans of 8 to 1 words exactly against names, the longest first; spans never overlap.

    A seed weighs ``(sum of idf over its words) ** 3 * share ** 0.5`` with ``idf = ln(1 + passages / df)``: the rarest
    name of a query carries most of its information. ``share`` is the number of passages that mention the name divided
    by the number of those that contain its rarest word, at most 1. In the coverage the information of a name counts
    ``share ** 0.25`` times.

    :param nodes: node by name in normal form.
    :param degree: by node, the number of passages that mention the name and that the caller may see. A name with a
        degree of 0 is ignored.
    :param frequency: by word, the number of passages that contain it.
    :param passages: number of all passages.
    """
    tokens = words(query)[:_MAX_QUERY_WORDS]
    idf = [math.log1p(passages / max(frequency.get(token, 0), 1)) for token in tokens]
    free = [True] * len(tokens)
    seeds: dict[int, float] = {}
    covered = 0.0
    common = max(MAX_FREQUENCY_RATIO * passages, MIN_COMMON_FREQUENCY)
    matches = [(-length, start, nodes[name]) for name, start, length in _spans(tokens) if name in nodes]
    for negative_length, start, node in sorted(matches):
        span = slice(start, start - negative_length)
        if not all(free[span]) or not (mentions := degree(node)):
            continue
        rarest = min(frequency.get(word, 0) for word in tokens[span])
        if negative_length == -1:
            may_be_name = _may_be_name(tokens[start]) and rarest <= common
            if not may_be_name or mentions < MIN_MENTION_RATIO * rarest:
                continue
        if (information := sum(idf[span])) <= 0:
            continue
        root_of_share = math.sqrt(mentions / max(mentions, rarest))
        seeds[node] = seeds.get(node, 0.0) + information**3 * root_of_share
        free[span] = [False] * -negative_length
        covered += information * math.sqrt(root_of_share)
    total = sum(idf)
    return LinkedEntities(seeds, covered / total if total else 0.0)


def walk_seeds(
    entities: LinkedEntities, documents: Sequence[int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """The seeds of a walk: the names in a query, and documents that other sources found for it, best first.

    The names get ``0.15 + 0.7 * entity_coverage`` of the mass, by weight; the documents get the rest, in proportion to
    ``1 / rank``. If there are only names or only documents, they get all of it.

    :param documents: nodes, each once.
    :returns: distinct nodes, and the mass of each, both of shape (count,); the masses sum to 1.
    """
    mass = seed_masses(entities, documents)
    return np.fromiter(mass, np.int64, len(mass)), np.fromiter(mass.values(), np.float32, len(mass))


def seed_masses(entities: LinkedEntities, documents: Sequence[int]) -> dict[int, float]:
    """The mass of each seed by node: see :func:`walk_seeds`."""
    mass: dict[int, float] = {}
    names_mass = _NAMES_MASS_BASE + _NAMES_MASS_SLOPE * entities.entity_coverage if documents else 1.0
    total = sum(entities.seeds.values())
    for node, weight in entities.seeds.items():
        mass[node] = names_mass * weight / total
    documents_mass = 1.0 - names_mass if entities.seeds else 1.0
    for node, fraction in zip(documents, fractions_by_rank(len(documents)), strict=True):
        mass[node] = mass.get(node, 0.0) + documents_mass * fraction
    return mass


def fractions_by_rank(count: int) -> list[float]:
    """The parts of a mass that ``count`` documents get, best first: in proportion to ``1 / rank``. Their sum is 1."""
    harmonic = sum(1 / rank for rank in range(1, count + 1))
    return [1 / rank / harmonic for rank in range(1, count + 1)]


@dataclass(frozen=True, slots=True)
class CandidateNames:
    """The distinct words of a query, and the possible names in it."""

    words: Sequence[str]
    names: Sequence[str]


def candidate_names(query: str) -> CandidateNames:
    """What :func:`link_entities` has to know the counts of."""
    tokens = words(query)[:_MAX_QUERY_WORDS]
    names = (name for name, _, length in _spans(tokens) if length > 1 or _may_be_name(name))
    return CandidateNames(list(dict.fromkeys(tokens)), list(dict.fromkeys(names)))


def _spans(tokens: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Every span of 1 to 8 words: its text, the index of its first word, its number of words."""
    for start in range(len(tokens)):
        name = ""
        for length, token in enumerate(tokens[start : start + MAX_WORDS], start=1):
            name = f"{name} {token}" if name else token
            yield name, start, length


def _may_be_name(word: str) -> bool:
    return len(word) >= _MIN_NAME_CHARS and not is_stopword(word)
