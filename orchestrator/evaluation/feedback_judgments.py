"""Judgments from the feedback of users: their votes, and where there are none, their clicks by a click model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from adapters.model.feedback import Feedback, ShownResponse
from orchestrator.evaluation.click_model import ClickModel, Shown, fitted

MAX_GRADE = 4
"""The relevance of a document that all who look at it use."""
_CLICKS = frozenset({"used", "useful"})


@dataclass(frozen=True, slots=True)
class Judgment:
    """The relevance of a document for a query.

    :param relevance: 0 to :data:`MAX_GRADE`.
    """

    query: str
    document: str
    relevance: int


@dataclass(frozen=True, slots=True)
class FeedbackJudgments:
    """What feedback says.

    :param judgments: in the order of query and document.
    :param responses: number of responses with feedback; ``unknown``: of those whose query has no known text.
    """

    judgments: Sequence[Judgment]
    model: ClickModel
    responses: int
    unknown: int


def judgments_of(
    recorded: Iterable[tuple[ShownResponse, Sequence[Feedback]]], texts: Mapping[str, str], min_looks: float
) -> FeedbackJudgments:
    """The judgments of a scope.

    A response without any feedback says nothing: its caller may never give any. Of the others every hit was shown where
    it was returned, or where the feedback says.

    :param texts: of queries, by their hash, where they are not recorded.
    :param min_looks: how often users must have looked at a document for a query, as the click model estimates; a
        document with votes needs none.
    """
    shown: list[Shown] = []
    votes: dict[tuple[str, str], list[bool]] = {}
    responses = unknown = 0
    for response, feedback in recorded:
        if not feedback:
            continue
        responses += 1
        query = response.query or texts.get(response.query_hash)
        if query is None:
            unknown += 1
            continue
        positions = {number: response.first + number for number in range(len(response.hits))}
        positions |= {each.hit: each.position for each in feedback}
        clicked = {each.hit for each in feedback if each.kind in _CLICKS}
        for number, (*_, document) in enumerate(response.hits):
            shown.append(Shown((query, document), positions[number], number in clicked))
        for each in feedback:
            if each.kind != "used":
                votes.setdefault((query, response.hits[each.hit][-1]), []).append(each.kind == "useful")
    model = fitted(shown)
    judgments = []
    for (query, document), attractiveness in model.attractiveness.items():
        pair = query, document
        if pair in votes:
            relevance = sum(votes[pair]) / len(votes[pair])
        elif model.looks[pair] >= min_looks:
            relevance = attractiveness
        else:
            continue
        judgments.append(Judgment(query, document, round(relevance * MAX_GRADE)))
    return FeedbackJudgments(judgments, model, responses, unknown)
