"""From what a reranker said to an order, as far as what it said makes sense."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from math import isfinite

from adapters.errors import BadResponse
from adapters.port import Judgement

_LISTS = ("ranking", "results", "data", "order", "ids", "passages")
_NUMBERS = ("id", "index", "number", "passage")
_SCORES = ("relevance_score", "score", "relevance")
_NAMED = re.compile(r'"(?:id|index|number|passage)"\s*:\s*"?(\d{1,9})\b')
_CHAIN = re.compile(r"\[?\d+\]?(?:\s*>\s*\[?\d+\]?)+")
"""``[3] > [1] > [2]``: the form of Sun et al., "Is ChatGPT Good at Search?", EMNLP 2023."""
_BARE = re.compile(r"\A\s*\d+(?:\s*[,;]\s*\d+)+\s*\Z")
_STARTS = 32
"""Brackets that are tried: a text of nothing else must not cost more than any other."""
_DIGITS = re.compile(r"\d{1,9}")
_START = re.compile(r"[\[{]")


def sound(named: Iterable[tuple[object, object]], count: int, first: int = 0) -> Judgement:
    """What is sound of (number, score) pairs, best first, about ``count`` passages that are counted from ``first``.

    What names no passage, or one for the second time, is left out; a score that is no number counts as none.

    :raises BadResponse: if nothing is left.
    """
    scores: dict[int, float | None] = {}
    strangers = repeated = 0
    for told, score in named:
        number = _whole(told)
        if number is None or not first <= number < first + count:
            strangers += 1
        elif number - first in scores:
            repeated += 1
        else:
            scores[number - first] = _number(score)
    if not scores:
        raise BadResponse("the reranker named none of the passages")
    wrong = [
        told
        for number, told in (
            (count - len(scores), f"named {len(scores)} of {count} passages"),
            (strangers, f"{strangers} that are not there"),
            (repeated, f"{repeated} twice"),
        )
        if number
    ]
    known = {number: score for number, score in scores.items() if score is not None}
    # Some answer in the order of what they were given: where all are scored, the scores are the order.
    order = sorted(scores, key=known.__getitem__, reverse=True) if len(known) == len(scores) else scores
    return Judgement(tuple(order), known, f"the reranker {', '.join(wrong)}" if wrong else "")


def from_json(content: object, count: int, first: int = 0) -> Judgement:
    """A list of numbers, or of objects with a number and a score; or an object that holds such a list.

    :raises BadResponse: if it is nothing of the kind.
    """
    if isinstance(content, dict):
        content = next((content[key] for key in _LISTS if isinstance(content.get(key), list)), None)
    if not isinstance(content, list):
        raise BadResponse("the reranker's answer holds no list")
    return sound([_pair(each) for each in content], count, first)


def from_text(text: str, count: int, first: int = 0) -> Judgement:
    """What a language model wrote: JSON, JSON among words, JSON that breaks off, or ``[3] > [1] > [2]``.

    Of several readings the one that names most passages is taken; the last of these, for it thinks first.

    :raises BadResponse: if there is no order in it.
    """
    best: Judgement | None = None
    for read in _readings(text):
        try:
            judged = read(count, first)
        except BadResponse:
            continue
        if best is None or len(judged.order) >= len(best.order):
            best = judged
    if best is None:
        raise BadResponse("the reranker wrote no order")
    return best


def _readings(text: str) -> Iterator[Callable[[int, int], Judgement]]:
    """Every way to read a text, the likelier later."""
    named = [(number, None) for number in _NAMED.findall(text)]
    yield partial(sound, named)
    for chain in _CHAIN.findall(text) or _BARE.findall(text):
        yield partial(sound, [(number, None) for number in _DIGITS.findall(chain)])
    decoder = json.JSONDecoder()
    end = 0
    for match in islice(_START.finditer(text), _STARTS):
        if match.start() < end:  # a part of what was read already
            continue
        try:
            content, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        yield partial(from_json, content)


def _pair(each: object) -> tuple[object, object]:
    if not isinstance(each, dict):
        return each, None
    number = next((each[key] for key in _NUMBERS if key in each), None)
    return number, next((each[key] for key in _SCORES if key in each), None)


def _whole(told: object) -> int | None:
    """A number as it may be written: 3, 3.0, "3", "[3]"."""
    if isinstance(told, bool):
        return None
    if isinstance(told, str):
        digits = told.strip().strip("[]")
        return int(digits) if digits.isdecimal() and len(digits) < 10 else None
    number = _number(told)
    return int(number) if number is not None and number.is_integer() else None


def _number(told: object) -> float | None:
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    try:
        return float(told) if isfinite(told) else None
    except OverflowError:
        return None
