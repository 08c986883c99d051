"""The errors that adapters raise. No other exception of a backend leaves an adapter.

AdapterError
├── Unavailable      cannot be reached, refuses to answer, or has no index yet
│   └── ExecutionFailed  answers, and could not do what was requested
├── TimedOut         did not answer within its time limit
├── Rejected         understood the request and refused it: the request is wrong
├── BadResponse      answered something that cannot be understood
├── Damaged          found a stored file whose checksum does not match
├── VersionConflict  has newer versions of documents than were written to it
└── VersionMismatch  has an index that another encoder or analyser built
"""

from __future__ import annotations

from collections.abc import Collection


class AdapterError(Exception):
    """Base class of all errors of adapters. It knows nothing of HTTP.

    :param message: for every caller: no address, no path, nothing that a backend wrote, so no text of a document.
    :param detail: for operators: the log and ``trivium doctor`` show it. No text of a document either.
    """

    detail = ""

    def __init__(self, message: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail

    @property
    def for_operators(self) -> str:
        """The message with its detail."""
        return f"{self}: {self.detail}" if self.detail else str(self)


class Unavailable(AdapterError):
    """The backend cannot be reached, refuses connections, or has no index yet. A later attempt may succeed."""


class ExecutionFailed(Unavailable):
    """The backend answered that the request failed, without a reason: the request or the backend may be at fault."""


class TimedOut(AdapterError):
    """The backend did not answer within its time limit. A later attempt may succeed."""


class Rejected(AdapterError):
    """The backend refused the request as wrong. The same request will be refused again."""


class BadResponse(AdapterError):
    """The backend's response cannot be understood."""


class Damaged(AdapterError):
    """A stored file whose checksum does not match: a disk has changed it."""


class VersionConflict(AdapterError):
    """Documents of a write have newer versions in the replica, and stay as they are; the others were written.

    :param versions: of these documents in the replica, in no order.
    """

    def __init__(self, backend: str, versions: Collection[int]) -> None:
        super().__init__(f"{backend} has newer versions of documents than this write")
        self.versions = frozenset(versions)


class VersionMismatch(AdapterError):
    """The index was built by another encoder, analyser or file format than the settings require."""
