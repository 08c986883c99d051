"""The stub closes every connection, also one that was accepted a moment before its end."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings

import pytest

from tests.servers.stub import stub

pytestmark = pytest.mark.anyio


async def _never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("turns", range(5))
async def test_no_socket_is_left_open(turns: int) -> None:
    unclosed: list[warnings.WarningMessage]
    with warnings.catch_warnings(record=True) as unclosed, socket.socket() as client:
        warnings.simplefilter("always")
        async with stub(_never) as port:
            client.connect(("127.0.0.1", port))
            for _ in range(turns):
                await asyncio.sleep(0)
        gc.collect()
    assert not [each.message for each in unclosed if each.category is ResourceWarning]
