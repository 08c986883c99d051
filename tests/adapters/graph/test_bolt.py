"""Reading over Bolt, on a real Neo4j."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import pytest

from adapters.graph.bolt import Bolt
from adapters.model.errors import Rejected, TimedOut, Unavailable
from adapters.servers.server import GRAPH_SCHEMES, Address, Limits
from tests.servers.stub import reset, stub

pytestmark = [pytest.mark.anyio, pytest.mark.server]

MANY_ROWS = "UNWIND range(1, 2000000) AS number RETURN number, toString(number) AS text"


@asynccontextmanager
async def one_connection(url: str, read_timeout_s: float) -> AsyncIterator[Bolt]:
    limits = Limits(read_timeout_s=read_timeout_s, write_timeout_s=30.0, max_connections=1)
    bolt = Bolt(Address.parse(url, GRAPH_SCHEMES), limits)
    try:
        yield bolt
    finally:
        await bolt.close()


@pytest.fixture
async def bolt(server_url: Callable[[str], str]) -> AsyncIterator[Bolt]:
    async with one_connection(server_url("bolt"), read_timeout_s=30.0) as bolt:
        yield bolt


async def answers(bolt: Bolt) -> bool:
    rows = await bolt.read("RETURN $number AS number", {"number": 7}, maintenance=True)
    return rows == [{"number": 7}]


async def test_a_read_that_is_cancelled_in_the_middle_leaves_no_rows_to_the_next(bolt: Bolt) -> None:
    """There is one connection: the next read gets a new one, not the rest of the rows."""
    assert await answers(bolt)
    for _ in range(5):
        reading = asyncio.create_task(bolt.read(MANY_ROWS, {}, maintenance=True))
        await asyncio.sleep(0.1)
        assert not reading.done()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await answers(bolt)


async def test_a_read_that_takes_too_long_is_an_error_and_the_next_one_succeeds(
    server_url: Callable[[str], str],
) -> None:
    async with one_connection(server_url("bolt"), read_timeout_s=1.0) as bolt:  # also the limit of a new connection
        for _ in range(3):
            with pytest.raises(TimedOut):
                await bolt.read(MANY_ROWS, {})
            assert await answers(bolt)


async def test_a_change_of_the_schema_that_another_client_made_is_no_error(bolt: Bolt) -> None:
    """Neo4j reports it in spite of ``IF NOT EXISTS``, if both run at the same time."""
    create = "CREATE INDEX schema_of_a_test FOR (n:SchemaOfATest) ON (n.id)"
    await bolt.change_schema([create])
    try:
        await bolt.change_schema([create, "CREATE INDEX second_of_a_test FOR (n:SchemaOfATest) ON (n.name)"])
        rows = await bolt.read("SHOW INDEXES YIELD name WHERE name ENDS WITH '_of_a_test' RETURN name", {}, True)
        assert {row["name"] for row in rows} == {"schema_of_a_test", "second_of_a_test"}
        with pytest.raises(Rejected):
            await bolt.change_schema(["CREATE INDEX"])
    finally:
        names = ("schema_of_a_test", "second_of_a_test")
        await bolt.change_schema([f"DROP INDEX {name} IF EXISTS" for name in names])


@pytest.mark.parametrize(
    "anyio_backend",
    [
        pytest.param(("asyncio", {"use_uvloop": uvloop}), id="uvloop" if uvloop else "asyncio")
        for uvloop in (False, True)
    ],
)
async def test_one_read_at_most_fails_after_all_connections_were_reset(server_url: Callable[[str], str]) -> None:
    """One reset fails at most one read, not one for each idle connection of the pool."""
    target = urlsplit(server_url("bolt")).port
    open_: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", target)
        open_.put_nowait(writer)
        await asyncio.gather(copy(reader, server_writer), copy(server_reader, writer))

    async with stub(forward) as port:
        address = Address.parse(f"bolt://127.0.0.1:{port}", GRAPH_SCHEMES)
        bolt = Bolt(address, Limits(read_timeout_s=30.0, max_connections=8))
        await asyncio.gather(*(answers(bolt) for _ in range(8)))
        await reset_all(open_, 8, port)
        failed = 0
        for _ in range(4):
            try:
                assert await answers(bolt)
            except Unavailable:
                failed += 1
        assert failed <= 1
        await reset_all(open_, 1, port)
        await bolt.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, RuntimeError):  # the other end was reset
        while block := await reader.read(65_536):
            writer.write(block)
    writer.close()


async def reset_all(open_: asyncio.Queue[asyncio.StreamWriter], count: int, port: int) -> None:
    """Reset the connections to a port; returns when their clients have noticed, as one more that is opened last has."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(10):
        for _ in range(count + 1):
            reset(await open_.get())
        with pytest.raises(ConnectionResetError):
            await reader.read()
    writer.close()
