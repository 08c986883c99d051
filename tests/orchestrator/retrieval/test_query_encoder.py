"""Which encoder encodes a query, and how often the model runs."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.retrieval.query_encoder import QueryEncoders
from tests.conftest import unit


class CountingModel:
    """A model with a vector of its own, and the texts that it encoded."""

    dimension = 16

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, text: str) -> np.ndarray:
        self.encoded.append(text)
        return unit(1)


class SomeWords:
    """A static encoder that knows all words but one."""

    def encode(self, text: str) -> np.ndarray | None:
        return None if text == "unknown" else unit(2)


def encoders(model: CountingModel) -> QueryEncoders:
    return QueryEncoders(model, SomeWords(), max_vectors=10)


def test_the_model_runs_once_for_a_text() -> None:
    model = CountingModel()
    both = encoders(model)
    for _ in range(2):
        encoded = both.encode("text", "model", "one")
        assert encoded.encoder_used == "model"
        assert np.array_equal(encoded.vector, unit(1))
    assert model.encoded == ["text"]


def test_the_static_encoder_never_returns_a_vector_of_the_model() -> None:
    both = encoders(CountingModel())
    both.encode("text", "model", "one")
    static = both.encode("text", "static", "one")
    assert static.encoder_used == "static"
    assert np.array_equal(static.vector, unit(2))


def test_the_model_encodes_a_text_whose_words_the_static_encoder_does_not_know() -> None:
    assert encoders(CountingModel()).encode("unknown", "static", "one").encoder_used == "model"


def test_an_error_is_not_cached() -> None:
    class FailingModel(CountingModel):
        def encode(self, text: str) -> np.ndarray:
            super().encode(text)
            raise RuntimeError("no")

    model = FailingModel()
    both = encoders(model)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            both.encode("text", "model", "one")
    assert model.encoded == ["text", "text"]


def test_how_long_encoding_takes_does_not_tell_what_another_tenant_searched_for() -> None:
    model = CountingModel()
    both = encoders(model)
    for tenant in ("one", "two", "one"):
        both.encode("text", "model", tenant)
    assert model.encoded == ["text", "text"]
