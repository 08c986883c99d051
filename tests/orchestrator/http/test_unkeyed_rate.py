"""Requests without a key have a rate; probes, and requests with a key, do not wait for it."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from orchestrator.auth.principal import Principal
from orchestrator.http.endpoint import OPERATION_KEY
from orchestrator.http.request_context import STATE_KEY
from orchestrator.http.routes import LIVENESS, READINESS
from orchestrator.http.unkeyed_rate import MAX_PER_S, UnkeyedRate
from tests.conftest import SCOPE
from tests.orchestrator.http.helpers import Exchange, respond_ok


def test_a_second_has_so_many_requests() -> None:
    now = 0.0
    rate = UnkeyedRate(lambda: now)
    assert [rate.is_exceeded() for _ in range(MAX_PER_S + 2)] == [False] * MAX_PER_S + [True] * 2
    now = 0.5
    assert sum(not rate.is_exceeded() for _ in range(MAX_PER_S)) == MAX_PER_S // 2
    now = 100.0
    assert sum(not rate.is_exceeded() for _ in range(2 * MAX_PER_S)) == MAX_PER_S


class ExceededRate(UnkeyedRate):
    """A rate that is exceeded: its requests wait until they are released."""

    def __init__(self) -> None:
        super().__init__()
        self.waits, self.release = asyncio.Event(), asyncio.Event()

    def is_exceeded(self) -> bool:
        return True

    async def wait(self) -> None:
        self.waits.set()
        await self.release.wait()


async def waiting_exchange(rate: ExceededRate) -> tuple[Exchange, asyncio.Future[Exchange]]:
    """A request that waits for the rate, and the task that it runs in."""
    exchange = Exchange(respond_ok, unkeyed_rate=rate)
    running = asyncio.ensure_future(exchange.run())
    await rate.waits.wait()
    return exchange, running


@pytest.mark.anyio
async def test_a_request_beyond_the_rate_waits_for_its_response() -> None:
    rate = ExceededRate()
    exchange, running = await waiting_exchange(rate)
    assert exchange.sent == []
    rate.release.set()
    await running
    assert exchange.status == 200


@pytest.mark.anyio
@pytest.mark.parametrize("operation", [LIVENESS, READINESS])
async def test_a_probe_does_not_wait(operation: object) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][OPERATION_KEY] = operation
        await respond_ok(scope, receive, send)

    assert (await asyncio.wait_for(Exchange(app, unkeyed_rate=ExceededRate()).run(), 5)).status == 200


@pytest.mark.anyio
async def test_a_request_with_a_key_does_not_wait() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][STATE_KEY].principal = Principal("reader", SCOPE, "normal")
        await respond_ok(scope, receive, send)

    assert (await asyncio.wait_for(Exchange(app, unkeyed_rate=ExceededRate()).run(), 5)).status == 200


@pytest.mark.anyio
async def test_a_request_that_waits_is_ended_when_the_process_stops() -> None:
    exchange, running = await waiting_exchange(ExceededRate())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5)
    assert exchange.status == 503
