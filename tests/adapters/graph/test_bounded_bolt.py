"""Opening connections over Bolt."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress

import pytest

from adapters.graph.bolt import Bolt
from adapters.model.errors import AdapterError
from adapters.servers.server import GRAPH_SCHEMES, Address, Limits
from tests.servers.stub import stub

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("steps", range(1, 12))
async def test_a_connection_whose_opening_is_cancelled_is_closed(steps: int) -> None:
    """At whichever step of the event loop it is: a socket that is left open is a warning when it is collected."""

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(-1)

    async with stub(never_answer) as port:
        address = Address.parse(f"bolt://127.0.0.1:{port}", GRAPH_SCHEMES)
        bolt = Bolt(address, Limits(read_timeout_s=0.2, write_timeout_s=0.2, max_connections=1))
        reading = asyncio.create_task(bolt.read("RETURN 1", {}))
        for _ in range(steps):
            await asyncio.sleep(0)
        reading.cancel()
        with suppress(asyncio.CancelledError, AdapterError):
            await reading
        await bolt.close()
    del reading
    gc.collect()
