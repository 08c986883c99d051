"""Encoders that users bring, and vectors that they bring instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adapters.encoders.address import encoder
from adapters.encoders.function import FunctionEncoder
from adapters.model.errors import Rejected, Unavailable
from adapters.ports.encoders import EncodedText

HERE = f"python://{__name__}"


def lengths(texts: list[str]) -> list[list[float]]:
    return [[len(text), 1.0, 0.0] for text in texts]


def by_kind(texts: list[str], kind: str) -> list[list[float]]:
    return [[float(kind == "query"), float(kind == "document")] for _ in texts]


def test_a_text_is_encoded_by_the_function_and_its_vector_has_unit_length() -> None:
    function = encoder(f"{HERE}:lengths")
    assert (function.identity, function.dimension, function.encodes_texts) == (f"{HERE}:lengths-3", 3, True)
    assert np.allclose(function.encode("four"), np.array([4, 1, 0]) / np.sqrt(17))
    first, second = function.encode_texts([EncodedText("text", "title", "before", "after"), EncodedText("longer text")])
    assert first.shape == second.shape == (1, 3)
    assert np.allclose(first[0], function.encode("title\nbefore\ntext\nafter"))
    assert np.allclose(second[0], function.encode("longer text"))


def test_a_function_that_asks_for_it_is_told_what_a_text_is() -> None:
    function = FunctionEncoder(by_kind, "f")
    assert function.encode("x").tolist() == [1, 0]
    assert np.concatenate(function.encode_texts([EncodedText("x")])).tolist() == [[0, 1]]


def test_many_texts_are_encoded_in_several_calls_in_order() -> None:
    sizes: list[int] = []

    def counting(texts: list[str]) -> list[list[float]]:
        sizes.append(len(texts))
        return lengths(texts)

    function = FunctionEncoder(counting, "f")
    texts = ["x" * count for count in range(1, 101)]
    vectors = np.concatenate(function.encode_texts(list(map(EncodedText, texts))))
    assert np.allclose(vectors[:, 0] / vectors[:, 1], range(1, 101))
    assert max(sizes) <= 32
    assert sum(sizes) == 101  # and that of the dimension


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda texts: None, "f returned no vectors: 'NoneType'"),
        (lambda texts: ["abc"], "f returned no vectors: could not convert"),
        (lambda texts: [[0.0, 0.0]], "f returned no vectors: must contain finite numbers"),
        (lambda texts: [[float("nan"), 1.0]], "f returned no vectors: must contain finite numbers"),
        (lambda texts: [[1.0]] * 2, "f returned 2 vectors for 1 texts"),
        (lambda texts: [[1.0] * 4_097], "f returned vectors of 4097 numbers, allowed are 1 to 4096"),
        (lambda texts: [1.0], "f returned no vectors: numbers"),
    ],
)
def test_what_is_no_vector_is_refused(function: Callable[[list[str]], Any], message: str) -> None:
    with pytest.raises(Rejected) as refused:
        FunctionEncoder(function, "f")
    assert message in refused.value.for_operators


def test_a_dimension_that_changes_is_refused() -> None:
    function = FunctionEncoder(lambda texts: [[1.0] * len(texts[0]) for _ in texts], "f")
    with pytest.raises(Rejected, match="vectors of 3 numbers, allowed are 9 as before"):
        function.encode("abc")


def test_a_function_that_fails_is_unavailable() -> None:
    def failing(texts: list[str]) -> list[list[float]]:
        raise RuntimeError("secret")

    with pytest.raises(Unavailable) as failed:
        FunctionEncoder(failing, "f")
    assert failed.value.for_operators == "f failed: RuntimeError"


def test_a_function_without_a_signature_can_be_called() -> None:
    with pytest.raises(Rejected, match="f returned"):
        FunctionEncoder(set, "f")
