"""Entity linking: from the words of a query to names in the graph, and from these to the seeds of a walk.

What is in this process is looked up as it is needed. From a graph server the counts of all words and possible names of
a query are read at once: see :func:`candidate_names`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from adapters.graph.names import MAX_LISTED_WORDS, words_of_chunk
from adapters.text.english import is_ordinary_word
from adapters.text.languages import is_stop_word
from adapters.text.segmentation import chunks

_MIN_NAME_CHARS = 3
"""Minimum length of a single word that may be a name, if no author lists it as one."""
_MAX_QUERY_WORDS = 256
"""Later words of a query are ignored."""
MAX_FREQUENCY_RATIO = 0.02
MIN_COMMON_FREQUENCY = 3
"""A single word in more than 2 % of the passages (and in more than 3) is too common to be searched as a name."""
_MIN_SHARE, _MIN_SHARE_CAPITALISED = 0.6, 0.2
"""A single word is a name only if at least this fraction of the passages that contain it mention it as a name: others
use it as a word. Capitalised in a query it is more likely to be one."""
_MAX_LOWER_CASE = 0.1
"""A word in lower case is no name if more than this fraction of the passages that contain it have it in lower case."""
NEVER = 2.0
"""A share that no name has: the word is a name only where an author lists it."""
_NAMES_MASS_BASE, _NAMES_MASS_FACTOR, _NAMES_MASS_SLOPE = 0.15, 1.5, 0.7
"""The names' fraction of the mass of a walk's seeds, if documents are seeds too, by entity coverage ``c``:
``min(0.15, 1.5 c) + 0.7 c``."""


@dataclass(frozen=True, slots=True)
class LinkedEntities:
    """The entities that a query mentions.

    :param seeds: weight by node, positive.
    :param entity_coverage: the fraction of the query's information that their names carry, in [0, 1]; less for a name
        whose words often occur with another meaning.
    """

    seeds: Mapping[int, float]
    entity_coverage: float


@dataclass(frozen=True, slots=True)
class Mentions:
    """How a name is mentioned in passages that the caller may see.

    :param count: number of passages.
    :param is_listed: whether the author of one lists it as an entity, which is not left to rules.
    """

    count: int
    is_listed: bool = False

    def share(self, passages: int) -> float:
        """The fraction of the passages with its rarest word that mention it; at most 1."""
        return self.count / max(self.count, passages, 1)


class WordCounts(NamedTuple):
    """The number of passages that contain a word, and of those that have it with a capital only."""

    passages: int = 0
    capitalised: int = 0


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query.

    :param text: in normal form.
    :param is_capitalised: so that it shows a name: not as every first word, and every word of a title, is.
    """

    text: str
    is_capitalised: bool = False

    @property
    def is_ordinary(self) -> bool:
        """Whether it is in lower case, and no name even in a corpus that has it as a name only: ``GET`` is a method."""
        return not self.is_capitalised and is_ordinary_word(self.text)

    @property
    def min_share(self) -> float:
        """The least share of a name that no author lists (see :func:`link_entities`), or :data:`NEVER`."""
        if len(self.text) < _MIN_NAME_CHARS or is_stop_word(self.text):
            return NEVER
        return _MIN_SHARE_CAPITALISED if self.is_capitalised else _MIN_SHARE

    def is_name(self, mentions: Mentions, counts: WordCounts, common: float) -> bool:
        """Whether it is the name, if it is in as many passages as ``counts`` says.

        :param common: the largest number of passages that contain a name which no author lists.
        """
        if self.is_ordinary or (not self.is_capitalised and self._is_used_as_word(counts)):
            return False
        share = mentions.share(counts.passages)
        return mentions.is_listed or (share >= self.min_share and counts.passages <= common)

    def _is_used_as_word(self, counts: WordCounts) -> bool:
        """Whether passages have it in lower case, and others as a name: not what is always written so (``numpy``), nor
        what has signs or digits (``c++``)."""
        in_lower_case = counts.passages - counts.capitalised
        return bool(counts.capitalised) and self.text.isalpha() and in_lower_case > _MAX_LOWER_CASE * counts.passages


def query_words(query: str) -> list[QueryWord]:
    """The words of a query, in order."""
    of_chunks = [(chunk, found) for chunk in chunks(query) if (found := words_of_chunk(chunk))]
    is_title = len(of_chunks) > 1 and not any(_is_lower(chunk) for chunk, _ in of_chunks)
    tokens: list[QueryWord] = []
    for number, (chunk, found) in enumerate(of_chunks):
        capitals = sum(map(str.isupper, chunk))
        is_capitalised = not is_title and capitals > (number == 0 and len(of_chunks) > 1)
        tokens += (QueryWord(word, is_capitalised) for word in found)
    return tokens[:_MAX_QUERY_WORDS]


def _is_lower(chunk: str) -> bool:
    return chunk.lower() == chunk


def link_entities(
    query: str,
    nodes: Mapping[str, int],
    mentions: Callable[[int], Mentions],
    counts: Callable[[str], WordCounts],
    passages: int,
) -> LinkedEntities:
    """Match spans of 32 to 1 words exactly against names, the longest first; spans never overlap.

    ``share`` is the number of passages that mention the name divided by the number of those that contain its rarest
    word, at most 1. A seed weighs ``(sum of idf over its words) ** 3 * share ** p``, where ``idf = ln(1 + passages /
    df)``: the rarest name of a query carries most of its information. In the coverage the information of a name counts
    ``share ** q`` times. For one word, which may be a word as well as a name, ``p`` is 1 and ``q`` is 2; for several,
    1/2 and 1/4.

    :param nodes: node by name in normal form.
    :param mentions: by node. A name without any is ignored.
    :param counts: by word.
    :param passages: number of all passages.
    """
    tokens = query_words(query)
    found_counts = [counts(token.text) for token in tokens]
    idf = [math.log1p(passages / max(each.passages, 1)) for each in found_counts]
    free = [True] * len(tokens)
    seeds: dict[int, float] = {}
    covered = 0.0
    common = max(MAX_FREQUENCY_RATIO * passages, MIN_COMMON_FREQUENCY)
    matches = [(-length, start, nodes[name]) for name, start, length in _spans(tokens) if name in nodes]
    for negative_length, start, node in sorted(matches):
        span = slice(start, start - negative_length)
        if not all(free[span]) or not (found := mentions(node)).count:
            continue
        if negative_length == -1 and not tokens[start].is_name(found, found_counts[start], common):
            continue
        share = found.share(min(each.passages for each in found_counts[span]))
        if (information := sum(idf[span])) <= 0:
            continue
        in_seed, in_coverage = (share, share**2) if negative_length == -1 else (share**0.5, share**0.25)
        seeds[node] = seeds.get(node, 0.0) + information**3 * in_seed
        free[span] = [False] * -negative_length
        covered += information * in_coverage
    total = sum(idf)
    return LinkedEntities(seeds, covered / total if total else 0.0)


def walk_seeds(
    entities: LinkedEntities, documents: Sequence[int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """The seeds of a walk: the names in a query, and documents that other sources found for it, best first.

    The names get ``min(0.15, 1.5 * entity_coverage) + 0.7 * entity_coverage`` of the mass, by weight; the documents get
    the rest, in proportion to ``1 / rank``. If there are only names or only documents, they get all of it.

    :param documents: nodes, each once.
    :returns: distinct nodes, and the mass of each, both of shape (count,); the masses sum to 1.
    """
    mass = seed_masses(entities, documents)
    return np.fromiter(mass, np.int64, len(mass)), np.fromiter(mass.values(), np.float32, len(mass))


def seed_masses(entities: LinkedEntities, documents: Sequence[int]) -> dict[int, float]:
    """The mass of each seed by node: see :func:`walk_seeds`."""
    mass: dict[int, float] = {}
    coverage = entities.entity_coverage
    names_mass = min(_NAMES_MASS_BASE, _NAMES_MASS_FACTOR * coverage) + _NAMES_MASS_SLOPE * coverage
    names_mass = names_mass if documents else 1.0
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
    """The distinct words of a query, and the possible names in it.

    :param names: each with the least share of its mentions: 0 for several words, else see :class:`QueryWord`.
    """

    words: Sequence[str]
    names: Mapping[str, float]


def candidate_names(query: str) -> CandidateNames:
    """What :func:`link_entities` has to know the counts of."""
    tokens = query_words(query)
    names: dict[str, float] = {}
    for name, start, length in _spans(tokens):
        if length > 1 or not tokens[start].is_ordinary:
            names[name] = min(names.get(name, NEVER), tokens[start].min_share if length == 1 else 0.0)
    return CandidateNames(list(dict.fromkeys(token.text for token in tokens)), names)


def _spans(tokens: Sequence[QueryWord]) -> Iterator[tuple[str, int, int]]:
    """Every span of 1 to 32 words: its text, the index of its first word, its number of words."""
    for start in range(len(tokens)):
        name = ""
        for length, token in enumerate(tokens[start : start + MAX_LISTED_WORDS], start=1):
            name = f"{name} {token.text}" if name else token.text
            yield name, start, length
