"""What the log of a service says about its shadow searches, by day."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np

from orchestrator.evaluation.judgments import BadDataset
from orchestrator.schema.decode import describe_decode_error
from orchestrator.service.shadow import COMPARED, FAILED

_DAY_CHARS = len("2026-01-31")


class _Line(msgspec.Struct):
    """The message of a line; every line of the log has one, or is a request."""

    message: str = ""


class _ShadowLine(msgspec.Struct):
    """What the line of every shadow search has."""

    time: str
    live: str
    shadow: str


class _ComparedLine(_ShadowLine):
    overlap: float
    rank_correlation: float | None
    same_first: bool
    live_ms: float
    shadow_ms: float


class Percentiles(NamedTuple):
    """Of times in ms: half of them, and 95 of 100, are at most so long."""

    p50: float
    p95: float


class Day(NamedTuple):
    """A day of two profiles, in UTC.

    :param compared: number of searches; ``failed``: of those without a whole shadow response.
    :param overlap: mean share of the hits that both have, in [0, 1]; ``None`` if nothing was compared, as all others.
    :param rank_correlation: mean of Kendall's tau of these hits, in [-1, 1]; ``None`` if there never were two.
    :param same_first: share of the searches with the same first hit.
    """

    day: str
    live: str
    shadow: str
    compared: int
    failed: int
    overlap: float | None
    rank_correlation: float | None
    same_first: float | None
    live_ms: Percentiles | None
    shadow_ms: Percentiles | None


@dataclass(slots=True)
class _Found:
    failed: int = 0
    compared: list[_ComparedLine] = field(default_factory=list)


def days_of(lines: Iterable[bytes]) -> list[Day]:
    """The days in a log, in their order. What is no JSON object, or about something else, is ignored.

    :raises BadDataset: if a line of a shadow search has other fields than the service writes.
    """
    found: dict[tuple[str, str, str], _Found] = {}
    for number, line in enumerate(lines, start=1):
        start = line.find(b"{")  # container runtimes put names and times before each line
        content = line[start:] if start >= 0 else b""
        if (message := _message(content)) not in {COMPARED, FAILED}:
            continue
        try:
            each = msgspec.json.decode(content, type=_ComparedLine if message == COMPARED else _ShadowLine)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadDataset(f"line {number} is {describe_decode_error(error)}") from error
        of_day = found.setdefault((each.time[:_DAY_CHARS], each.live, each.shadow), _Found())
        if isinstance(each, _ComparedLine):
            of_day.compared.append(each)
        else:
            of_day.failed += 1
    return [_day(*key, of_day) for key, of_day in sorted(found.items())]


def _message(content: bytes) -> str:
    try:
        return msgspec.json.decode(content, type=_Line).message
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _day(day: str, live: str, shadow: str, found: _Found) -> Day:
    compared = found.compared
    if not compared:
        return Day(day, live, shadow, 0, found.failed, None, None, None, None, None)
    correlations = [each.rank_correlation for each in compared if each.rank_correlation is not None]
    return Day(
        day,
        live,
        shadow,
        len(compared),
        found.failed,
        overlap=float(np.mean([each.overlap for each in compared])),
        rank_correlation=float(np.mean(correlations)) if correlations else None,
        same_first=float(np.mean([each.same_first for each in compared])),
        live_ms=_percentiles([each.live_ms for each in compared]),
        shadow_ms=_percentiles([each.shadow_ms for each in compared]),
    )


def _percentiles(values: list[float]) -> Percentiles:
    p50, p95 = np.percentile(values, (50, 95))
    return Percentiles(float(p50), float(p95))
