"""Cypher over Bolt: connections to one server, its dialect, the translation of its errors.

Statements that read run without an explicit transaction, which would double the cost; callers retry searches.
Writes are managed transactions, with a bounded number of retries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypeAlias, TypeVar

import neo4j
from neo4j import exceptions as driver

from adapters.graph.bounded_bolt import limited_response
from adapters.graph.cypher import Dialect
from adapters.model.errors import AdapterError, ExecutionFailed, Rejected, TimedOut, Unavailable
from adapters.servers.server import (
    Address,
    Limits,
    describe_error,
    named_kind,
    translated_errors,
    unreachable,
    unreadable,
)
from adapters.servers.trace_context import trace_headers

T = TypeVar("T")
Row: TypeAlias = dict[str, Any]
Run: TypeAlias = Callable[[str, Row], Awaitable[list[Row]]]
"""Runs one statement with its parameters and returns all its rows."""
TransactionBody: TypeAlias = Callable[[Run], Awaitable[T]]
"""The statements of one transaction. It may run several times, so it must have no effect outside the server."""

# A server warns about each name in a statement that the database does not contain yet: on an empty one, about all.
logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)

_IDLE_S = 60.0
_MAX_SEARCH_BYTES = 67_108_864
_MAX_RESPONSE_BYTES = 1_073_741_824
"""Maximum size of what a search reads, and of what maintenance reads: centralities need all links of a graph."""
_MEMGRAPH_TIMEOUT = "because of transaction timeout"
_REFUSED_CONNECTIONS = ("Memgraph.ClientError.Security.", "Memgraph.ClientError.Statement.SessionLimitReached")
_REJECTIONS = ("Neo.ClientError.Statement", "Memgraph.ClientError.")
_READ, _WRITE = neo4j.READ_ACCESS, neo4j.WRITE_ACCESS


class Bolt:
    """A connection pool for one server. Create it on the event loop that will use it.

    The driver gets ``bolt://``, never ``neo4j://``: routing needs a cluster that supports it.
    """

    def __init__(self, address: Address, limits: Limits) -> None:
        self._limits = limits
        read_timeout_s = limits.read_timeout_s
        self._driver = neo4j.AsyncGraphDatabase.driver(
            str(address),
            auth=(address.user, address.password),
            max_connection_pool_size=limits.max_connections,
            connection_timeout=read_timeout_s,
            connection_acquisition_timeout=read_timeout_s,
            # The driver treats a write that timed out as transient: by default it waits a second and retries for 30.
            # These values allow a few retries; then the write is reported as pending, and replication repeats it.
            initial_retry_delay=read_timeout_s / 20,
            max_transaction_retry_time=read_timeout_s / 4,
            # Servers end idle sessions, Memgraph after 1,800 s: a connection that was idle is checked before its use.
            liveness_check_timeout=_IDLE_S,
            telemetry_disabled=True,
        )
        self._dialect: Dialect | None = None

    @property
    def read_timeout_s(self) -> float:
        """Time limit of a read that a search waits for."""
        return self._limits.read_timeout_s

    async def read(
        self, statement: str, parameters: Row, maintenance: bool = False, planning: bool = False
    ) -> list[Row]:
        """Run one statement that reads.

        :param maintenance: whether no search waits for it; then it has the time limit of a write, and may be larger.
        :param planning: whether it is read for its plan; then it has the time limit of a write, too.
        """
        timeout_s = self._limits.write_timeout_s if maintenance or planning else self._limits.read_timeout_s
        query = neo4j.Query(statement, metadata=trace_headers() or None, timeout=timeout_s)
        async with _translated(timeout_s):
            session = self._driver.session(default_access_mode=_READ)
            try:
                with limited_response(_MAX_RESPONSE_BYTES if maintenance else _MAX_SEARCH_BYTES):
                    return await _rows(await session.run(query, parameters))
            except driver.Neo4jError:
                raise
            except BaseException:
                session.cancel()  # the state of the connection is unknown: it is closed, not used again
                raise
            finally:
                await session.close()

    async def write(self, statement: str, parameters: Row) -> list[Row]:
        """Run one statement that writes."""
        return await self.transaction(lambda run: run(statement, parameters))

    async def transaction(self, body: TransactionBody[T]) -> T:
        """Run a transaction that writes. ``body`` may run several times."""
        timeout_s = self._limits.write_timeout_s

        @neo4j.unit_of_work(metadata=trace_headers() or None, timeout=timeout_s)
        async def bounded(transaction: neo4j.AsyncManagedTransaction) -> T:
            with limited_response(_MAX_RESPONSE_BYTES):
                return await body(partial(_run, transaction))

        async with _translated(timeout_s), self._driver.session(default_access_mode=_WRITE) as session:
            return await session.execute_write(bounded)

    async def change_schema(self, statements: list[str]) -> None:
        """Run each statement in a transaction of its own, as Memgraph requires of changes to the schema.

        An existing object is no error. Neo4j reports an error in spite of ``IF NOT EXISTS`` while another client, or an
        earlier attempt that timed out, creates the same object.
        """
        async with _translated(self._limits.write_timeout_s), self._driver.session() as session:
            for statement in statements:
                try:
                    await (await session.run(statement)).consume()
                except driver.ClientError as error:
                    if not str(error.code).endswith("AlreadyExists"):
                        raise

    async def dialect(self) -> Dialect:
        """The dialect of Cypher that the server supports."""
        if self._dialect is None:
            self._dialect = "memgraph" if "memgraph" in (await self.release()).lower() else "neo4j"
        return self._dialect

    async def release(self) -> str:
        """The product and release that the server reports."""
        async with _translated(self._limits.read_timeout_s):
            return (await self._driver.get_server_info()).agent

    async def close(self) -> None:
        """Close the connections."""
        await self._driver.close()


async def _run(transaction: neo4j.AsyncManagedTransaction, statement: str, parameters: Row) -> list[Row]:
    return await _rows(await transaction.run(statement, parameters))


async def _rows(result: neo4j.AsyncResult) -> list[Row]:
    """The rows, without the copies of ``data()``: statements return plain values only."""
    return [dict(record) async for record in result]


def _translated(call_timeout_s: float) -> AbstractAsyncContextManager[None]:
    return translated_errors("the graph server", call_timeout_s, _translate)


def _translate(error: Exception) -> AdapterError | None:
    """The adapter error for an error of the driver."""
    match error:
        case driver.ServiceUnavailable() | driver.SessionExpired() | driver.ConnectionPoolError():
            return unreachable("the graph server", error)
        case asyncio.IncompleteReadError():
            return Unavailable("the graph server closed the connection")
        case driver.Neo4jError():
            return _translate_server_error(error)
        case driver.AuthError() | driver.ConfigurationError():
            return Unavailable("the graph server rejected the connection", describe_error(error))
        case _ if type(error).__module__.startswith("neo4j."):
            # For violations of the protocol the driver raises errors that are not part of its public API.
            return unreadable("the graph server's response", error)
        case _:
            return None


def _translate_server_error(error: driver.Neo4jError) -> AdapterError:
    """The adapter error for a failure that the server reports.

    Neo4j has a code for each kind of failure, Memgraph one for each class: transient ones, those of the client (the
    statement, or the documents), and those of the database.
    """
    code = str(error.code)
    if "TimedOut" in code or "Timeout" in code or _MEMGRAPH_TIMEOUT in str(error.message):
        return TimedOut("the graph server timed out", named_kind(code))
    if code.startswith(_REFUSED_CONNECTIONS):
        return Unavailable("the graph server rejected the connection", named_kind(code))
    if code.startswith(_REJECTIONS):
        return Rejected("the graph server rejected the statement", named_kind(code))
    if ".TransientError." in code:
        return Unavailable("the graph server reported a transient error", named_kind(code))
    return ExecutionFailed("a statement failed on the graph server", named_kind(code))
