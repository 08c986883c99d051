"""The errors that adapters raise. They raise no exception of a driver.

AdapterError
├── Unavailable      a server or a file cannot be used, or there is no index yet
│   └── ExecutionFailed  a server reports that a request failed
├── Warming          a server has just started and is not ready for searches
├── TimedOut         a time limit was exceeded
├── Rejected         a request was rejected as invalid
├── BadResponse      a response cannot be understood
├── Damaged          a stored file has a checksum mismatch
├── VersionConflict  a replica has newer versions of documents than a write
└── VersionMismatch  an index was built by another encoder or analyser
"""

from __future__ import annotations

from collections.abc import Collection


class AdapterError(Exception):
    """Base class of all errors of adapters. It knows nothing of HTTP.

    :param message: for every caller: no address, no path, no text from a server, and so none of a document.
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
    """A server cannot be reached, rejects connections, or has no index yet; or a file cannot be read or written.

    A later attempt may succeed.
    """


class ExecutionFailed(Unavailable):
    """A server reports that a request failed, without a reason: the request or the server may be at fault."""


class Warming(AdapterError):
    """A server that has just started prepares itself for searches. A later attempt succeeds; it is no failure."""


class TimedOut(AdapterError):
    """A time limit was exceeded. A later attempt may succeed."""


class Rejected(AdapterError):
    """A request was rejected as invalid. The same request will be rejected again."""


class BadResponse(AdapterError):
    """A response cannot be understood."""


class Damaged(AdapterError):
    """A stored file has a checksum mismatch: a disk has changed it."""


class VersionConflict(AdapterError):
    """Documents of a write have newer versions in the replica, and were not changed; the others were written.

    :param versions: of these documents in the replica, in no order.
    """

    def __init__(self, backend: str, versions: Collection[int]) -> None:
        super().__init__(f"{backend} has newer versions of documents than this write")
        self.versions = frozenset(versions)


class VersionMismatch(AdapterError):
    """The index was built by another encoder, analyser or file format than the settings require."""


BUILD_ADVICE = "`trivium backfill` builds one as the settings require, beside it; or use the settings that built it"
"""What to do about an index of another build."""


def reason_of(error: Exception) -> str:
    """What went wrong, for operators: of an error of the operating system the file and the text, without the number."""
    if isinstance(error, AdapterError):
        return error.for_operators
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return str(error)
