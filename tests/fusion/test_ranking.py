from __future__ import annotations

import pytest

from fusion import Hit, Ranking


def test_ranks_start_at_one() -> None:
    assert list(Ranking("vector", ("b", "a"), (0.9, 0.8))) == [Hit("b", 1, 0.9), Hit("a", 2, 0.8)]


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="'vector' has 2 ids but 1 scores"):
        Ranking("vector", ("a", "b"), (1.0,))


def test_a_document_stands_once() -> None:
    with pytest.raises(ValueError, match="names a document twice"):
        Ranking("vector", ("a", "a"), (1.0, 0.5))


def test_ranks_may_be_given() -> None:
    assert list(Ranking("vector", ("b", "a"), (0.9, 0.8), ranks=(1, 1))) == [Hit("b", 1, 0.9), Hit("a", 1, 0.8)]
    with pytest.raises(ValueError, match="'vector' has 2 ids but 1 ranks"):
        Ranking("vector", ("a", "b"), (1.0, 0.5), ranks=(1,))
