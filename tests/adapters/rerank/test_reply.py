from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import BadResponse
from adapters.ports import RerankResult
from adapters.rerank.reply import from_json, from_text, validated


@pytest.mark.parametrize(
    ("written", "order"),
    [
        ('{"ranking": [{"id": 3, "score": 0.9}, {"id": 1, "score": 0.5}, {"id": 2, "score": 0.1}]}', (2, 0, 1)),
        ("[3, 1, 2]", (2, 0, 1)),
        ('["3", "[1]", 2.0]', (2, 0, 1)),
        ("[3] > [1] > [2]", (2, 0, 1)),
        ("3, 1, 2", (2, 0, 1)),
        ('{"ranking": "3 > 1 > 2"}', (2, 0, 1)),
        ("Ranking: [3] > [1] > [2].", (2, 0, 1)),
        ('Passage [2] is close.\n{"ranking": [3, 1, 2]}', (2, 0, 1)),
        ("<think>maybe [1, 2, 3]? no</think>[3, 1, 2]", (2, 0, 1)),
        ('[{"id": 1, "score": 0.5}, {"id": 2, "score": 0.1}, {"id": 3, "score": 0.9}]', (2, 0, 1)),
        ('```json\n{"ranking": [3, 1, 2]}\n```', (2, 0, 1)),
        (
            'Sure! By relevance [as asked]: {"results": [{"index": 3}, {"index": 1}, {"index": 2}]} Anything else?',
            (2, 0, 1),
        ),
    ],
)
def test_an_order_is_read_however_it_is_written(written: str, order: tuple[int, ...]) -> None:
    read = from_text(written, 3, first=1)
    assert (read.order, read.warning) == (order, "")


def test_scores_that_are_not_numbers_are_ignored() -> None:
    reply = [
        {"id": 1, "score": 0.9},
        {"id": 2, "score": "high"},
        {"id": 3, "relevance_score": 1},
        {"id": 4, "score": True},
    ]
    assert from_json(reply, 4, first=1).scores == {0: 0.9, 2: 1.0}
    assert from_json([{"id": 1, "score": float("nan")}], 1, first=1).scores == {}


@pytest.mark.parametrize(
    ("written", "order", "warning"),
    [
        ("[2]", (1,), "returned 1 of 4 passages"),
        ('{"ranking": [{"id": 3, "reasons": [1]}, {"id": 2', (2, 1), "returned 2 of 4 passages"),
        ("[2, 2, 9, 0, 4]", (1, 3), "returned 2 of 4 passages, 2 that do not exist, 1 twice"),
        (
            '{"ranking": [{"id": 2}, {"id": "none"}, {}, 7, null, [1], true]}',
            (1,),
            "returned 1 of 4 passages, 6 that do not",
        ),
        ('{"ranking": [{"id": 2, "score": 0.9}, {"id": 4, "score": 0.', (1, 3), "returned 2 of 4 passages"),
    ],
)
def test_the_valid_ones_are_used_and_the_rest_is_reported(written: str, order: tuple[int, ...], warning: str) -> None:
    read = from_text(written, 4, first=1)
    assert read.order == order
    assert warning in read.warning


@pytest.mark.parametrize(
    "written",
    ["", "I cannot do that.", "{}", "[]", "[9, 8]", "null", "[" * 10_000, "passage 3 is 0.9"],
)
def test_a_text_without_an_order_is_a_bad_response(written: str) -> None:
    with pytest.raises(BadResponse):
        from_text(written, 3, first=1)


@given(st.text(max_size=60) | st.recursive(st.integers() | st.floats() | st.text(max_size=3), st.lists).map(json.dumps))
def test_any_text_is_an_order_or_a_bad_response(written: str) -> None:
    try:
        read = from_text(written, 5, first=1)
    except BadResponse:
        return
    assert len(set(read.order)) == len(read.order) > 0
    assert set(read.order) <= set(range(5))
    assert set(read.scores) <= set(read.order)


def test_a_complete_reply_has_no_warning() -> None:
    assert validated([(1, 0.5), (0, None)], 2) == RerankResult((1, 0), {1: 0.5})
