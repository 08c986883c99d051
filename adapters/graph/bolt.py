"""Cypher over Bolt: one server, its dialect, its errors as ours. Managed transactions only, with bounded retries."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypeAlias, TypeVar

import neo4j
from neo4j import exceptions as raised

from adapters.errors import AdapterError, BadResponse, Rejected, TimedOut, Unavailable
from adapters.graph.cypher import Dialect
from adapters.server import Address, Limits, call, short

T = TypeVar("T")
Row: TypeAlias = dict[str, Any]
Work: TypeAlias = Callable[[neo4j.AsyncManagedTransaction], Awaitable[T]]

# A server warns of every name in a statement that it has not seen yet: of all of them, on an empty database.
logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)

_READ, _WRITE = neo4j.READ_ACCESS, neo4j.WRITE_ACCESS


class Bolt:
    """A connection pool to one server. Make it on the event loop that will use it.

    ``bolt://`` and never ``neo4j://``: routing needs a cluster that can route.
    """

    def __init__(self, address: Address, limits: Limits) -> None:
        self._limits = limits
        self._driver = neo4j.AsyncGraphDatabase.driver(
            str(address),
            auth=(address.user, address.password),
            max_connection_pool_size=limits.connections,
            connection_timeout=limits.read_s,
            connection_acquisition_timeout=limits.read_s,
            # A query that timed out counts as transient for the driver, which would first wait a second and then try it
            # again for 30. This leaves it a few tries inside the time of a search, and time to say what went wrong.
            initial_retry_delay=limits.read_s / 20,
            max_transaction_retry_time=limits.read_s / 4,
            telemetry_disabled=True,
        )
        self._dialect: Dialect | None = None

    async def read(self, query: str, parameters: Row, patient: bool = False) -> list[Row]:
        """One statement that reads; with the patience of a write if nobody waits for the answer of a search."""
        seconds = self._limits.write_s if patient else self._limits.read_s
        return await self._run(_READ, seconds, partial(run, query=query, parameters=parameters))

    async def write(self, query: str, parameters: Row) -> list[Row]:
        """One statement that writes."""
        return await self.change(partial(run, query=query, parameters=parameters))

    async def change(self, work: Work[T]) -> T:
        """A transaction that writes; ``work`` may be run again, so it must do nothing but ask the server."""
        return await self._run(_WRITE, self._limits.write_s, work)

    async def define(self, statements: list[str]) -> None:
        """What changes the schema, each statement in a transaction of its own, as Memgraph demands."""
        async with _call(self._limits.write_s), self._driver.session() as session:
            for each in statements:
                await (await session.run(each)).consume()

    async def dialect(self) -> Dialect:
        """Which of the two is spoken there."""
        if self._dialect is None:
            self._dialect = "memgraph" if "memgraph" in (await self.version()).lower() else "neo4j"
        return self._dialect

    async def version(self) -> str:
        """What the server says it is."""
        async with _call(self._limits.read_s):
            return (await self._driver.get_server_info()).agent

    async def close(self) -> None:
        """Give the connections back."""
        await self._driver.close()

    async def _run(self, mode: str, seconds: float, work: Work[T]) -> T:
        bounded = neo4j.unit_of_work(timeout=seconds)(work)
        async with _call(seconds), self._driver.session(default_access_mode=mode) as session:
            execute = session.execute_read if mode == _READ else session.execute_write
            return await execute(bounded)


async def run(transaction: neo4j.AsyncManagedTransaction, query: str, parameters: Row) -> list[Row]:
    """One statement of a transaction; all its rows."""
    return await (await transaction.run(query, parameters)).data()


def _call(seconds: float) -> AbstractAsyncContextManager[None]:
    return call("the graph server", seconds, _meant)


def _meant(error: Exception) -> AdapterError | None:
    """The driver's errors as ours."""
    match error:
        case raised.ServiceUnavailable() | raised.SessionExpired() | raised.ConnectionPoolError():
            return Unavailable(f"the graph server cannot be reached: {short(error)}")
        case asyncio.IncompleteReadError():
            return Unavailable(f"the graph server hung up: {short(error)}")
        case raised.Neo4jError():
            return _of_server(error)
        case raised.AuthError() | raised.ConfigurationError():
            return Unavailable(f"the graph server refuses us: {short(error)}")
        case _ if type(error).__module__.startswith("neo4j."):
            # What breaks the protocol is raised as something that the driver shows nobody.
            return BadResponse(f"the graph server: {short(error)}")
        case _:
            return None


def _of_server(error: raised.Neo4jError) -> AdapterError:
    """A failure that the server tells of itself; its time-outs come under several codes."""
    told = f"the graph server: {short(error)}"
    if "timeout" in told.lower() or "timedout" in told.lower() or "timed out" in told.lower():
        return TimedOut(told)
    # Memgraph has one code for all that went wrong, full memory included: what may pass must not count as refused.
    return Rejected(told) if str(error.code).startswith("Neo.ClientError.Statement") else Unavailable(told)
