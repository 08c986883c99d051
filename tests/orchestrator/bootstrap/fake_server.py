"""A keyword server in memory, and the type of a function that opens the service with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from adapters import VersionMismatch
from adapters.ports import SourceQuery, VectorRecord
from adapters.ports.replica import Key
from adapters.ports.server import Difference
from fusion.columns import Ranking
from orchestrator.service.service import Service

OpenService: TypeAlias = Callable[..., AbstractAsyncContextManager[Service]]


class FakeServer:
    """A keyword server: returns every document for every query.

    :ivar failures: errors of the next searches, in order.
    :ivar mismatch: raised when the build of its index is checked, or the index created.
    """

    def __init__(self) -> None:
        self.queries: list[SourceQuery] = []
        self.failures: list[Exception] = []
        self.is_warming = False
        self.mismatch: VersionMismatch | None = None
        self.checks = 0
        self.created = 0

    async def search(self, query: SourceQuery) -> Ranking:
        self.queries.append(query)
        if self.failures:
            raise self.failures.pop(0)
        return Ranking.of_ids("keyword", ("a", "b"), (2.0, 1.0))

    async def check(self) -> bool:
        self.checks += 1
        if self.mismatch:
            raise self.mismatch
        return True

    async def create(self) -> None:
        self.created += 1
        if self.mismatch:
            raise self.mismatch

    async def apply(self, sequence: int, upserts: Sequence[VectorRecord], deletes: Sequence[Key]) -> None: ...

    async def count(self) -> int:
        return 2

    async def release(self) -> str:
        return "1"

    async def clock(self) -> float | None:
        return None

    async def differences(self) -> Sequence[Difference]:
        return ()

    async def close(self) -> None: ...
