"""The lines of the response to ``POST /v1/search/batch``, also for the command line."""

from __future__ import annotations

import msgspec

from orchestrator.http.errors import problem_of
from orchestrator.service.batch import Outcome
from orchestrator.service.response_cache import EncodedResponse


def encoded_line(number: int, outcome: Outcome, request_id: str) -> tuple[int, bytes]:
    """The status of a line of the request, and the line of the response for its outcome."""
    if isinstance(outcome, EncodedResponse):
        return 200, b'{"line":%d,"status":200,"response":%b}\n' % (number, outcome.content)
    problem = problem_of(outcome, f"{request_id}-{number}")
    encoded = msgspec.json.encode(problem)
    return problem.status, b'{"line":%d,"status":%d,"problem":%b}\n' % (number, problem.status, encoded)
