"""What an adapter raises, and nothing else leaves one.

AdapterError
├── Unavailable    cannot be reached, refuses, or is not built yet
├── TimedOut       did not answer in its time
├── Rejected       understood us and said no: our request was at fault
├── BadResponse    answered what makes no sense
└── VersionMismatch  holds an index that another embedder or analyser built
"""

from __future__ import annotations


class AdapterError(Exception):
    """Base of what adapters raise; knows nothing of HTTP."""


class Unavailable(AdapterError):
    """The backend cannot be reached, refuses connections, or has no index yet."""


class TimedOut(AdapterError):
    """The backend did not answer within its deadline."""


class Rejected(AdapterError):
    """The backend refused the request as wrong."""


class BadResponse(AdapterError):
    """The backend's answer cannot be understood."""


class VersionMismatch(AdapterError):
    """The index was built by another embedder, analyser or format than the settings name."""
