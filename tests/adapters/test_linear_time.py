"""The time for a text grows with its length, and not with the square of it, whatever the text is."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.graph.entity_linking import Mentions, WordCounts, candidate_names, link_entities
from adapters.graph.extract import RULES, extractor
from adapters.graph.names import normalize, surname
from adapters.keyword.analysis import parse_query, stemmed_words

_LENGTH, _FACTOR = 20_000, 8
_NOISE_S = 0.1
"""Longer than the short text takes, and far less than a square would: 20 ms become 1.3 s."""

PIECES = st.lists(
    st.sampled_from([*"Aaé .,:;!?'’\"([)\n-_&日", "The ", "of ", "the ", "'s", "RESULTS In "]), min_size=1, max_size=6
).map("".join)

READERS: dict[str, Callable[[str], object]] = {
    "extraction": extractor(RULES),
    "normal form": normalize,
    "bibliography": surname,
    "linking": lambda text: (
        candidate_names(text),
        link_entities(text, {"a a": 1}, lambda _: Mentions(1), lambda _: WordCounts(1, 1), 9),
    ),
    "query": parse_query,
    "words": stemmed_words,
}


def _seconds(read: Callable[[str], object], text: str) -> float:
    start = thread_time()  # processor time: a loaded machine changes little
    read(text)
    return thread_time() - start


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=30, deadline=None)
@example("A ")
@example("The ")
@example("A. ")
@example("(")
@example('"a" ')
@given(PIECES)
def test_the_time_grows_with_the_length(reader: str, piece: str) -> None:
    read = READERS[reader]
    short, long = (piece * (length // len(piece)) for length in (_LENGTH, _FACTOR * _LENGTH))
    allowed = 3 * _FACTOR * min(_seconds(read, short) for _ in range(2)) + _NOISE_S
    assert min(_seconds(read, long) for _ in range(2)) < allowed
