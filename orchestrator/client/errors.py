"""Everything that a client raises, as one tree. The errors of a service are its problems (RFC 9457), by status."""

from __future__ import annotations

from orchestrator.schema.problem import Problem


class TriviumError(Exception):
    """Base class of all errors of a client."""


class Unreachable(TriviumError):
    """The service could not be reached, or the connection was lost. It may have processed the request."""


class DeadlineExceeded(TriviumError):
    """There was no response within the time limit. The service may have processed the request."""


class BadReply(TriviumError):
    """The response is not one of this API: something else answers at that address, or the release differs."""


class Refused(TriviumError):
    """The service answered with a problem.

    :param problem: what the service sent.
    :param retry_after_s: seconds after which the request may be repeated; ``None`` if the service names none.
    """

    def __init__(self, problem: Problem, retry_after_s: float | None = None) -> None:
        super().__init__("; ".join((problem.detail or problem.title, *problem.errors)))
        self.problem = problem
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status

    def __reduce__(self) -> tuple[type[Refused], tuple[Problem, float | None]]:
        return type(self), (self.problem, self.retry_after_s)


class InvalidRequest(Refused):
    """A value of the request is not allowed (400, 405, 408, 413, 422, 431)."""


class Unauthenticated(Refused):
    """There is no API key, or none of this service (401)."""


class Forbidden(Refused):
    """The key may not do this (403)."""


class NotFound(Refused):
    """There is no such document, or the key may not see it (404)."""


class Conflict(Refused):
    """Several documents have the id: name the collection (409)."""


class Overloaded(Refused):
    """The caller has more requests than its share (429)."""


class Failed(Refused):
    """The service has a defect (500); its log has the request id."""


class Unavailable(Refused):
    """The service cannot answer now (503): it is overloaded, every source failed, or it is stopping."""


_BY_STATUS: dict[int, type[Refused]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: Overloaded,
    500: Failed,
    503: Unavailable,
}


def refusal(problem: Problem, retry_after_s: float | None) -> Refused:
    """The error of a problem."""
    default = InvalidRequest if problem.status < 500 else Unavailable  # of HTTP
    return _BY_STATUS.get(problem.status, default)(problem, retry_after_s)
