"""The values that the stages of a search pass on: outcomes of sources, what they found, what was ranked, the page."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec import UNSET, UnsetType

from adapters import AdapterError, Sensitivity
from fusion.boosts import Factors
from fusion.columns import Candidates, Ranking
from fusion.confidence import UNKNOWN, Confidences
from fusion.rank_fields import Floats, Ints
from fusion.sums import Fused
from orchestrator.schema.hits import ContextText, SearchHit
from orchestrator.schema.search import Degraded, EncoderUsed

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answered:
    """The source returned a ranking in time."""

    ranking: Ranking


@dataclass(frozen=True, slots=True)
class Failed:
    """The search of the source failed; ``reason`` is for the caller.

    :param after_ms: ms after the start of the search.
    :param is_blameless: whether the source is not at fault: it refused this request, or has just started.
    """

    source: str
    reason: str
    after_ms: float
    is_blameless: bool = False


Outcome: TypeAlias = Answered | Failed

TIMED_OUT = "timed out"


class AllSourcesFailed(Exception):
    """Every source that was searched failed; there is nothing to rank."""

    def __init__(self, failures: tuple[Failed, ...]) -> None:
        super().__init__("; ".join(f"{failed.source}: {failed.reason}" for failed in failures))
        self.failures = failures

    def __reduce__(self) -> tuple[type[AllSourcesFailed], tuple[tuple[Failed, ...]]]:
        """Copies have the failures, too: a single flight raises copies of one error in several waiters."""
        return type(self), (self.failures,)


def logged_reason(stage: str, error: BaseException) -> str:
    """Why a stage failed, for the caller. Details for operators are logged."""
    if isinstance(error, AdapterError) and error.detail:
        _log.warning("%s failed: %s", stage, error.for_operators)
    return str(error) or TIMED_OUT  # a time limit of the service has no message


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What the sources returned.

    :param rankings: of the sources that succeeded, in the order of the plan.
    :param searched: names of the sources that were searched, also if they failed.
    :param encoder: the encoder of the query.
    :param degraded: sources that failed, and failures in preparing their queries.
    :param first: by ranking, how many of its documents were found before a further search; empty if there was none.
    :param matched: the number of documents that match if there is no query; then there are no rankings.
    """

    rankings: tuple[Ranking, ...]
    searched: tuple[str, ...]
    encoder: EncoderUsed
    expansions: tuple[str, ...]
    degraded: tuple[Degraded, ...]
    first: tuple[int, ...] = ()
    matched: int | None = None

    @property
    def first_docs(self) -> Ints | None:
        """The numbers of the documents that were found before a further search; ``None`` if there was none."""
        if not self.first:
            return None
        parts = [ranking.docs[:count] for ranking, count in zip(self.rankings, self.first, strict=True)]
        return np.unique(np.concatenate(parts))

    def is_exhausted(self, depth: int) -> bool:
        """Whether no source has more documents."""
        return all(len(ranking) < depth for ranking in self.rankings)


@dataclass(frozen=True, slots=True)
class FusedCandidates:
    """Candidates in the order of the fusion score.

    :param fused: the candidates that reach the minimum score.
    :param below: rows of the others.
    :param strategy: the strategy that was used.
    :param warning: why it is not the planned one; empty if it is.
    """

    candidates: Candidates
    fused: Fused
    below: Ints
    strategy: str
    warning: str


def _no_rows() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Rows of the candidates in their final order.

    :param score: by row of the candidates.
    :param unsure: rows that were dropped because the confidence is too low.
    :param factors: of each boost, by row of the candidates.
    :param collapsed_into: rows that were dropped, and the row that replaces each.
    :param crowded_urls: urls of which rows were dropped.
    :param mixed_with: a hash of how the ranking was computed whose hits are mixed with these; empty if there is none.
    """

    rows: Ints
    score: Floats
    fused: FusedCandidates
    factors: Factors
    collapsed_into: Mapping[int, int]
    confidences: Confidences = UNKNOWN
    unsure: Ints = field(default_factory=_no_rows)
    crowded_urls: tuple[str, ...] = ()
    mixed_with: bytes = b""


class RerankOutcome(NamedTuple):
    """What became of reranking: ``used``, ``failed``, or ``empty`` if no hit may be sent to the reranker; and why."""

    outcome: Literal["not requested", "used", "failed", "empty"]
    reason: str = ""


NOT_RERANKED = RerankOutcome("not requested")


@dataclass(frozen=True, slots=True)
class Page:
    """The hits of a page.

    :param sensitivities: parallel to ``hits``.
    :param end: the offset in the ranking after the last row that was used.
    :param total: number of rows in the ranking.
    :param deleted: rows whose document no longer exists.
    :param withheld: rows whose document failed the access check.
    :param context: the texts of the hits as one.
    :param rerank: what became of reranking.
    :param profiles: that each hit is of, if they are of two in turn; ``None`` for a hit that says nothing of both.
    """

    hits: tuple[SearchHit, ...]
    sensitivities: tuple[Sensitivity, ...]
    end: int
    total: int
    deleted: int = 0
    withheld: int = 0
    context: ContextText | UnsetType = UNSET
    rerank: RerankOutcome = NOT_RERANKED
    profiles: tuple[str | None, ...] | UnsetType = UNSET
