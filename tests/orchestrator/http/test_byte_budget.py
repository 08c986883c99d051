"""Bytes of large bodies: tenants share them fairly, and each request gives back what it held."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orchestrator.auth.principal import Principal
from orchestrator.http.byte_budget import ByteBudget, ByteBudgets, HeldBytes
from orchestrator.http.errors import HttpError
from orchestrator.http.request_context import STATE_KEY
from tests.conftest import SCOPE
from tests.orchestrator.http.helpers import Exchange

LARGE = 100_000
READER = Principal("reader", SCOPE, "normal")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 400)), max_size=60))
def test_all_tenants_together_hold_no_more_than_the_budget_and_another_one_always_finds_some(
    taken: list[tuple[str, int]],
) -> None:
    budget = ByteBudget(1_000, "requests")
    held: dict[str, int] = {}
    for tenant, size in taken:
        try:
            budget.take(tenant, size)
        except HttpError as error:
            assert error.status in (429, 503)
        else:
            held[tenant] = held.get(tenant, 0) + size
    assert sum(held.values()) < 1_000
    budget.take("another", (1_000 - sum(held.values())) // 2)
    for tenant, size in held.items():
        budget.give_back(tenant, size)


def test_one_tenant_gets_half_and_the_largest_of_several_is_told_so() -> None:
    budget = ByteBudget(1_000, "requests")
    budget.take("a", 500)
    with pytest.raises(HttpError, match="the requests of all tenants have too many bytes: try again") as refused:
        budget.take("a", 1)
    assert refused.value.status == 503
    budget.take("b", 100)
    with pytest.raises(HttpError, match="the requests of your tenant have too many bytes") as refused:
        budget.take("a", 1)
    assert refused.value.status == 429
    budget.give_back("a", 500)
    budget.take("a", 1)


def test_small_bodies_are_not_counted_and_growing_ones_are_counted_once() -> None:
    budget = ByteBudget(2 * LARGE, "requests")
    HeldBytes(budget, "a").grow_to(60_000)
    held = HeldBytes(budget, "a")
    for size in range(0, LARGE + 1, 10_000):
        held.grow_to(size)
    with pytest.raises(HttpError):
        held.grow_to(LARGE + 1)
    held.give_back()
    held.give_back()
    budget.take("a", LARGE)


def budgets(size: int) -> ByteBudgets:
    return ByteBudgets(ByteBudget(size, "requests"), responses=ByteBudget(size, "responses that are being read"))


@pytest.mark.anyio
@pytest.mark.parametrize("is_declared", [True, False])
async def test_a_body_is_held_until_its_request_ends(is_declared: bool) -> None:
    shared = budgets(2 * LARGE)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        context = scope["state"][STATE_KEY]
        context.principal = READER
        assert len(await context.body(10 * LARGE)) == LARGE
        with pytest.raises(HttpError):
            shared.requests.take(READER.scope.tenant, 1)
        await Response(b"ok")(scope, receive, send)

    headers = [(b"content-length", b"%d" % LARGE)] if is_declared else [(b"transfer-encoding", b"chunked")]
    for _ in range(2):
        incoming = [{"type": "http.request", "body": b"x" * LARGE, "more_body": False}]
        assert (await Exchange(app, headers, incoming, "POST", byte_budgets=shared).run()).status == 200


@pytest.mark.anyio
async def test_a_declared_body_that_does_not_fit_is_refused_before_it_is_read() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await scope["state"][STATE_KEY].body(10 * LARGE)

    headers = [(b"content-length", b"%d" % LARGE)]
    exchange = await Exchange(app, headers, [], "POST", byte_budgets=budgets(LARGE)).run()
    assert exchange.status == 503
    assert exchange.header(b"retry-after") == b"1"
    assert exchange.header(b"connection") == b"close"


@pytest.mark.anyio
async def test_a_response_that_does_not_fit_becomes_a_short_one() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][STATE_KEY].principal = READER
        await Response(b"x" * LARGE)(scope, receive, send)

    exchange = await Exchange(app, byte_budgets=budgets(LARGE)).run()
    assert exchange.status == 503
    detail = json.loads(exchange.sent[1]["body"])["detail"]
    assert detail == "the responses that are being read of all tenants have too many bytes: try again in a moment"


@pytest.mark.anyio
@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 131_072, 200_000])
async def test_a_response_is_written_in_parts(size: int) -> None:
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][STATE_KEY].principal = READER
        await Response(body)(scope, receive, send)

    shared = budgets(10 * LARGE)
    exchange = await Exchange(app, byte_budgets=shared).run()
    _, *parts = exchange.sent
    assert b"".join(part["body"] for part in parts) == body
    assert max(len(part["body"]) for part in parts) <= 65_536
    assert [part.get("more_body", False) for part in parts] == [True] * (len(parts) - 1) + [False]
    shared.responses.take(READER.scope.tenant, 5 * LARGE)  # nothing is held any more
