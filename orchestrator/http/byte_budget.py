"""Bytes of large bodies that a process holds at the same time, shared fairly between tenants."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from orchestrator.http.errors import HttpError

MAX_REQUEST_BYTES, MAX_UPLOAD_BYTES, MAX_RESPONSE_BYTES = 67_108_864, 1_073_741_824, 134_217_728
"""Of the bodies of requests in memory, of documents in files, and of responses: of all tenants in one process."""
_UNCOUNTED_BYTES = 65_536
"""Bodies of this size or less are not counted: the connections that they came from are limited."""


class ByteBudget:
    """Bytes that all tenants may hold together.

    A tenant may hold as much as it leaves free, so one alone gets half of all bytes, and another one always finds some
    (Choudhury, Hahne: "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998).

    :param what: what the bytes belong to, for errors.
    """

    def __init__(self, max_bytes: int, what: str) -> None:
        self._what = what
        self._free_bytes = max_bytes
        self._held_bytes: Counter[str] = Counter()

    def take(self, tenant: str, size: int) -> None:
        """Take bytes for a tenant.

        :raises HttpError: if it would hold more than is left free: 429 if others hold less, else 503.
        """
        held = self._held_bytes[tenant] + size
        if held > self._free_bytes - size:
            is_largest = len(self._held_bytes) > 1 and held >= max(self._held_bytes.values())
            status, owner = (429, "of your tenant") if is_largest else (503, "of all tenants")
            raise HttpError(status, f"the {self._what} {owner} have too many bytes: try again in a moment")
        self._held_bytes[tenant] = held
        self._free_bytes -= size

    def give_back(self, tenant: str, size: int) -> None:
        """Give back bytes that were taken."""
        self._free_bytes += size
        self._held_bytes[tenant] -= size
        if not self._held_bytes[tenant]:
            del self._held_bytes[tenant]


class HeldBytes:
    """The bytes of one body, which may grow."""

    def __init__(self, budget: ByteBudget, tenant: str) -> None:
        self._budget, self._tenant = budget, tenant
        self._size = 0

    def grow_to(self, size: int) -> None:
        """Hold this many bytes, unless they are few.

        :raises HttpError: as :meth:`ByteBudget.take`.
        """
        if size > max(self._size, _UNCOUNTED_BYTES):
            self._budget.take(self._tenant, size - self._size)
            self._size = size

    def give_back(self) -> None:
        """Hold nothing any more."""
        if self._size:
            self._budget.give_back(self._tenant, self._size)
            self._size = 0


@dataclass(frozen=True, slots=True)
class ByteBudgets:
    """The budgets of a process.

    :param requests: bodies in memory, until their requests end.
    :param uploads: bodies of documents in files, until they are written.
    :param responses: bodies that clients have not read yet.
    """

    requests: ByteBudget = field(default_factory=lambda: ByteBudget(MAX_REQUEST_BYTES, "requests"))
    uploads: ByteBudget = field(
        default_factory=lambda: ByteBudget(MAX_UPLOAD_BYTES, "documents that wait to be written")
    )
    responses: ByteBudget = field(
        default_factory=lambda: ByteBudget(MAX_RESPONSE_BYTES, "responses that are being read")
    )
