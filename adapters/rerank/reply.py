"""Replies of rerankers, parsed to an order of the passages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from math import isfinite

from adapters.model.errors import BadResponse
from adapters.ports.reranker import RerankResult

_LIST_KEYS = ("ranking", "results", "data", "order", "ids", "passages")
_NUMBER_KEYS = ("id", "index", "number", "passage")
_SCORE_KEYS = ("relevance_score", "score", "relevance")
_NAMED_NUMBER = re.compile(r'"(?:id|index|number|passage)"\s*:\s*"?(\d{1,9})\b')
_CHAIN = re.compile(r"\[?\d+\]?(?:\s*>\s*\[?\d+\]?)+")
"""``[3] > [1] > [2]``: the form of Sun et al., "Is ChatGPT Good at Search?", EMNLP 2023."""
_LIST_OF_NUMBERS = re.compile(r"\A\s*\d+(?:\s*[,;]\s*\d+)+\s*\Z")
_DIGITS = re.compile(r"\d{1,9}")
_BRACKET = re.compile(r"[\[{]")
_MAX_BRACKETS = 32
"""Maximum number of brackets that are tried as the start of JSON. It bounds the cost of a text of brackets."""


def validated(scored: Iterable[tuple[object, object]], count: int, first: int = 0) -> RerankResult:
    """The valid pairs of a number and a score, best first. If all have scores, these decide the order.

    A number that is not a passage's, or that occurred before, is left out; a score that is not a finite number is
    ignored. The warning of the result counts what was left out.

    :param count: number of passages.
    :param first: the number of the first passage.
    :raises BadResponse: if no pair is valid.
    """
    scores: dict[int, float | None] = {}
    unknown = repeated = 0
    for value, score in scored:
        number = _integer(value)
        if number is None or not first <= number < first + count:
            unknown += 1
        elif number - first in scores:
            repeated += 1
        else:
            scores[number - first] = _finite(score)
    if not scores:
        raise BadResponse("the reranker returned none of the passages")
    warnings = [
        warning
        for number, warning in (
            (count - len(scores), f"returned {len(scores)} of {count} passages"),
            (unknown, f"{unknown} that do not exist"),
            (repeated, f"{repeated} twice"),
        )
        if number
    ]
    known = {index: score for index, score in scores.items() if score is not None}
    # Some rerankers return the passages in the order of the request.
    order = sorted(scores, key=known.__getitem__, reverse=True) if len(known) == len(scores) else scores
    return RerankResult(tuple(order), known, f"the reranker {', '.join(warnings)}" if warnings else "")


def from_json(content: object, count: int, first: int = 0) -> RerankResult:
    """Read a list of numbers, or of objects with a number and a score; or an object that contains such a list.

    :param count: number of passages.
    :param first: the number of the first passage.
    :raises BadResponse: if the content has another form.
    """
    if isinstance(content, dict):
        content = next((content[key] for key in _LIST_KEYS if isinstance(content.get(key), list)), None)
    if not isinstance(content, list):
        raise BadResponse("the reranker's response contains no list")
    return validated([_number_and_score(each) for each in content], count, first)


def from_text(text: str, count: int, first: int = 0) -> RerankResult:
    """Read the reply of a language model: JSON, JSON among words, truncated JSON, or ``[3] > [1] > [2]``.

    Of several readings the one with the highest number of passages is used; of equal ones the last, because models
    write their reasoning first.

    :param count: number of passages.
    :param first: the number of the first passage.
    :raises BadResponse: if the text contains no order.
    """
    best: RerankResult | None = None
    for read in _readings(text):
        try:
            result = read(count, first)
        except BadResponse:
            continue
        if best is None or len(result.order) >= len(best.order):
            best = result
    if best is None:
        raise BadResponse("the reranker's text contains no order")
    return best


def _readings(text: str) -> Iterator[Callable[[int, int], RerankResult]]:
    """Every way to read a text, the more probable ones later."""
    named = [(number, None) for number in _NAMED_NUMBER.findall(text)]
    yield partial(validated, named)
    for chain in _CHAIN.findall(text) or _LIST_OF_NUMBERS.findall(text):
        yield partial(validated, [(number, None) for number in _DIGITS.findall(chain)])
    decoder = json.JSONDecoder()
    end = 0
    for match in islice(_BRACKET.finditer(text), _MAX_BRACKETS):
        if match.start() < end:  # inside of JSON that was read already
            continue
        try:
            content, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        yield partial(from_json, content)


def _number_and_score(each: object) -> tuple[object, object]:
    if not isinstance(each, dict):
        return each, None
    number = next((each[key] for key in _NUMBER_KEYS if key in each), None)
    return number, next((each[key] for key in _SCORE_KEYS if key in each), None)


def _integer(value: object) -> int | None:
    """An integer as models write it: 3, 3.0, "3", "[3]"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        digits = value.strip().strip("[]")
        return int(digits) if digits.isdecimal() and len(digits) < 10 else None
    number = _finite(value)
    return int(number) if number is not None and number.is_integer() else None


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if isfinite(value) else None
    except OverflowError:
        return None
