"""What Memgraph's errors mean. The codes and messages are those of its source (``src/query/exceptions.hpp``,
``src/storage/v2/storage.hpp``, ``src/communication/bolt/v1/states``): it has one code for each class of errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters import AdapterError, ExecutionFailed, Rejected, TimedOut, Unavailable
from adapters.graph.bolt import Bolt
from adapters.graph.memgraph import MemgraphGraph
from adapters.servers.server import GRAPH_SCHEMES, Address, Limits
from orchestrator.indexing.replication import Replication
from tests.adapters.source_fixtures import source_query
from tests.conftest import vector_record
from tests.orchestrator.indexing.replicas import MemoryReplica, open_log
from tests.servers.bolt_stub import LOGON, MEMGRAPH, failing_memgraph
from tests.servers.stub import stub

pytestmark = pytest.mark.anyio

TRANSIENT, CLIENT, DATABASE = (
    f"Memgraph.{kind}Error.MemgraphError.MemgraphError" for kind in ("Transient", "Client", "Database")
)
LIMITS = Limits(read_timeout_s=2.0, write_timeout_s=2.0, max_connections=2)
AGAIN_LATER = [
    "Cannot resolve conflicting transactions. Retry this transaction when the conflicting transaction is finished.",
    "Memory limit exceeded! Attempting to allocate a chunk of 1.00MiB which would put the current use to 2.00GiB.",
    "Cannot get shared access to the storage. Try stopping other parallel queries. You can increase the timeout via "
    "SET DATABASE SETTINGS 'storage.access_timeout_sec' TO 'value'; See: .../transactions#storage-access-timeout",
    "Transaction was asked to abort because of database shutdown.",
]
NEVER = [
    "Error on line 1 position 1. mismatched input 'X'.",
    "Unbound variable: x.",
    "Unable to commit due to unique constraint violation on :Document(key)",
    "You are not authorized to execute this query on the memgraph database.",
    "Write query forbidden on the replica!",
]


def graph(port: int) -> MemgraphGraph:
    bolt = Bolt(Address.parse(f"bolt://127.0.0.1:{port}", GRAPH_SCHEMES), LIMITS)
    return MemgraphGraph(bolt, "stub", "t")


async def error_of(code: str, message: str) -> AdapterError:
    """The error of a count: a read that no plan is made for."""
    async with stub(failing_memgraph(code, message)) as port:
        server = graph(port)
        with pytest.raises(AdapterError) as raised:
            await server.count()
        await server.close()
    assert message not in f"{raised.value}{raised.value.for_operators}"
    return raised.value


@pytest.mark.parametrize("message", AGAIN_LATER)
async def test_a_transient_error_is_no_fault_of_the_documents(message: str) -> None:
    assert type(await error_of(TRANSIENT, message)) is Unavailable


async def test_a_transaction_that_takes_too_long_has_timed_out() -> None:
    message = "Transaction was asked to abort because of transaction timeout."
    assert type(await error_of(TRANSIENT, message)) is TimedOut


@pytest.mark.parametrize("message", NEVER)
async def test_a_client_error_is_a_refusal(message: str) -> None:
    assert type(await error_of(CLIENT, message)) is Rejected


async def test_an_error_of_the_database_is_a_failure_for_an_unknown_reason() -> None:
    assert type(await error_of(DATABASE, "An unknown exception occurred, this is unexpected.")) is ExecutionFailed


@pytest.mark.parametrize("code", ["Security.Unauthenticated", "Statement.SessionLimitReached"])
async def test_a_connection_that_is_refused_is_not_a_refused_statement(code: str) -> None:
    async with stub(failing_memgraph(f"Memgraph.ClientError.{code}", "Authentication failure", at=LOGON)) as port:
        server = graph(port)
        with pytest.raises(Unavailable, match="rejected the connection"):
            await server.search(source_query())
        await server.close()


async def test_the_stub_introduces_itself_as_memgraph_does() -> None:
    async with stub(failing_memgraph(CLIENT, "never")) as port:
        server = graph(port)
        assert await server.release() == MEMGRAPH
        await server.close()


@pytest.mark.parametrize("message", NEVER)
async def test_documents_wait_for_a_server_that_refuses_everything(tmp_path: Path, message: str) -> None:
    """A user without the right to write is refused the probe, too: the documents are not quarantined."""
    usual = MemoryReplica()
    async with stub(failing_memgraph(CLIENT, message)) as port:
        server = graph(port)
        replication = Replication(open_log(tmp_path), {"keyword": usual, "graph": server}, "keyword", usual, "t")
        acknowledgement = await replication.write([vector_record("a"), vector_record("b")], [])
        await server.close()
    assert list(acknowledgement.pending) == ["graph"]
    assert replication.refused() == []
