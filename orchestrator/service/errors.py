"""Errors of the use cases. They are independent of HTTP; each edge maps them.

ServiceError
├── NotFound     there is no such document, or the principal may not see it
├── Ambiguous    several documents have the id: the collection has to be named
└── Overloaded   the request would take too long, because too many are waiting

Besides these, a use case raises ``Forbidden`` (auth), ``BadRequest`` (planning; also for a write without documents),
``AllSourcesFailed`` (retrieval) and ``AdapterError``.
"""

from __future__ import annotations


class ServiceError(Exception):
    """Base of the errors of this package."""


class NotFound(ServiceError):
    """There is no such document, or the principal may not see it."""


class Ambiguous(ServiceError):
    """Several documents that the principal may see have the id: the collection has to be named."""


class Overloaded(ServiceError):
    """More requests are waiting than can be processed in time.

    :param over_quota: whether the tenant has more requests waiting than its fair share while others wait.
    """

    def __init__(self, over_quota: bool) -> None:
        super().__init__(
            "your tenant has more requests waiting than its share"
            if over_quota
            else "more requests are waiting than can be processed in time"
        )
        self.over_quota = over_quota

    def __reduce__(self) -> tuple[type[Overloaded], tuple[bool]]:
        """Copies have the argument, too: a single flight raises copies of one error in several waiters."""
        return type(self), (self.over_quota,)
