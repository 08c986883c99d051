"""``POST /v1/search/batch``: a line of the response."""

from __future__ import annotations

from msgspec import Struct

from orchestrator.schema.problem import Problem
from orchestrator.schema.search import SearchResponse


class BatchLine(Struct, frozen=True, omit_defaults=True):
    """One line of the response to ``POST /v1/search/batch``: the outcome of one line of the request.

    :param line: of the request, from 1.
    :param status: that ``POST /v1/search`` would have had.
    :param problem: instead of a response, if the status is not 200.
    """

    line: int
    status: int
    response: SearchResponse | None = None
    problem: Problem | None = None
