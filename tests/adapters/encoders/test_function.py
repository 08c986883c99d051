"""Encoders that users bring, and vectors that they bring instead."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from adapters.encoders.address import encoder
from adapters.encoders.function import MAX_CALLS, FunctionEncoder
from adapters.model.errors import Rejected, TimedOut, Unavailable
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
        (lambda texts: ["abc"], "f returned no values of <U3, allowed are lists of numbers"),
        (lambda texts: [["1", "2"]], "f returned 2 values of <U1, allowed are lists of numbers"),
        (lambda texts: [[True, False]], "f returned 2 values of bool, allowed are lists of numbers"),
        (lambda texts: [[10**400, 1]], "allowed are lists of numbers"),
        (lambda texts: [[0.0, 0.0]], "f returned [0.0, 0.0] for text 1 of 1: no direction"),
        (lambda texts: [[float("nan"), 1.0]], "f returned [nan, 1.0] for text 1 of 1: no direction"),
        (lambda texts: [[1.0]] * 2, "f returned 2 vectors for 1 texts"),
        (lambda texts: [[1.0] * 4_097], "f returned vectors of 4097 numbers, allowed are 1 to 4096, always as many"),
        (lambda texts: [1.0], "f returned no values of float64, allowed are lists of numbers"),
        (lambda texts: [], "f returned 0 vectors for 1 texts"),
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


class Odd:
    """What becomes an array only with an error, as some tensors do."""

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise RuntimeError("detach it first")


def failing(texts: list[str]) -> list[list[float]]:
    raise RuntimeError("out of memory")


def generating(texts: list[str]) -> Iterator[list[float]]:
    yield [1.0]
    raise RuntimeError("out of memory")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (failing, r"f failed: RuntimeError in .*test_function.py, line \d+: out of memory"),
        (generating, r"f failed: RuntimeError in .*test_function.py, line \d+: out of memory"),
        (lambda texts: sys.exit(3), r"f failed: SystemExit in .*test_function.py, line \d+: 3"),
        (lambda texts: [Odd()], r"f failed: RuntimeError in .*test_function.py, line \d+: detach it first"),
        (lambda texts: None, r"f failed: TypeError in .*function.py, line \d+: 'NoneType' object is not iterable"),
    ],
)
def test_a_function_that_fails_is_unavailable_and_says_why(function: Callable[[list[str]], Any], message: str) -> None:
    with pytest.raises(Unavailable) as failed:
        FunctionEncoder(function, "f")
    assert re.fullmatch(message, failed.value.for_operators)


def test_a_function_that_does_not_return_is_given_up_and_leaves_room_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adapters.encoders.function._MAX_S", 0.05)
    go_on = threading.Event()

    def hanging(texts: list[str]) -> list[list[float]]:
        if texts == ["hang"]:
            go_on.wait()
        return lengths(texts)

    function = FunctionEncoder(hanging, "f")
    for _ in range(MAX_CALLS):
        with pytest.raises(TimedOut, match=r"f did not return within 0.05 s"):
            function.encode_texts([EncodedText("hang")])
    with pytest.raises(Unavailable, match="f already runs 8 times, which is the maximum"):
        function.encode_texts([EncodedText("text")])
    go_on.set()
    while True:  # until the threads have ended
        try:
            assert len(function.encode_texts([EncodedText("text")])) == 1
            break
        except Unavailable:
            continue


def test_a_function_without_a_signature_can_be_called() -> None:
    with pytest.raises(Rejected, match="f returned no values of <U9"):
        FunctionEncoder(set, "f")


def test_the_error_of_a_function_shows_no_text_of_a_document() -> None:
    def failing_later(texts: list[str]) -> list[list[float]]:
        if "secret" in texts:
            raise ValueError(f"cannot encode {texts}")
        return lengths(texts)

    function = FunctionEncoder(failing_later, "f")
    with pytest.raises(Unavailable) as failed:
        function.encode_texts([EncodedText("secret")])
    assert "ValueError in " in failed.value.for_operators
    assert "secret" not in failed.value.for_operators
