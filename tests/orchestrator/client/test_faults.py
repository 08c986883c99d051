"""When the service fails: nothing is lost or doubled, deadlines hold, and each error is one of the tree."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable

import anyio
import pytest

from orchestrator.client import (
    AsyncClient,
    BadReply,
    Client,
    Conflict,
    DeadlineExceeded,
    Failed,
    Forbidden,
    InvalidRequest,
    NotFound,
    Overloaded,
    Refused,
    Retries,
    TriviumError,
    Unauthenticated,
    Unavailable,
    Unreachable,
)
from orchestrator.client.retries import RetryBudget
from orchestrator.schema.problem import Problem
from tests.orchestrator.client.scripted import READY, refusing, scripted

QUICK = Retries(first_delay_s=0.001)
CUT = READY[:-5]


def collections(url: str, retries: Retries = QUICK, timeout_s: float = 5.0) -> int:
    with Client(url, retries=retries, timeout_s=timeout_s) as client:
        return len(client.collections())


def collections_async(url: str, retries: Retries = QUICK, timeout_s: float = 5.0) -> int:
    async def run() -> int:
        async with AsyncClient(url, retries=retries, timeout_s=timeout_s) as client:
            return len(await client.collections())

    return anyio.run(run)


both = pytest.mark.parametrize("call", [collections, collections_async])


@both
@pytest.mark.parametrize("first", [refusing("503 x"), refusing("429 x"), b"", CUT], ids=["503", "429", "closed", "cut"])
def test_what_may_succeed_later_is_repeated(call: Callable[..., int], first: bytes) -> None:
    with scripted([first, READY]) as (url, received):
        assert call(url) == 0
    assert len(received) == 2
    assert received[0] == received[1]


@both
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("400 x", InvalidRequest),
        ("401 x", Unauthenticated),
        ("403 x", Forbidden),
        ("404 x", NotFound),
        ("409 x", Conflict),
        ("413 x", InvalidRequest),
        ("422 x", InvalidRequest),
        ("500 x", Failed),
    ],
)
def test_what_would_fail_again_is_not_repeated(call: Callable[..., int], status: str, kind: type[Refused]) -> None:
    with scripted([refusing(status)]) as (url, received), pytest.raises(kind, match="as it was told") as raised:
        call(url)
    assert len(received) == 1
    assert raised.value.status == int(status[:3])


@both
@pytest.mark.parametrize(
    ("answer", "kind"),
    [(refusing("429 x"), Overloaded), (refusing("503 x"), Unavailable), (b"", Unreachable)],
)
def test_after_the_last_attempt_its_error_is_raised(
    call: Callable[..., int], answer: bytes, kind: type[TriviumError]
) -> None:
    with scripted([answer]) as (url, received), pytest.raises(kind):
        call(url, retries=Retries(attempts=3, first_delay_s=0.001))
    assert len(received) == 3


@both
def test_the_deadline_holds_for_a_service_that_does_not_answer(call: Callable[..., int]) -> None:
    with scripted([None]) as (url, _):
        begin = time.monotonic()
        with pytest.raises(DeadlineExceeded, match=r"GET /v1/collections: no response within 0\.3 s"):
            call(url, timeout_s=0.3)
        assert 0.25 < time.monotonic() - begin < 3


@both
def test_a_request_is_not_repeated_if_its_deadline_would_pass(call: Callable[..., int]) -> None:
    with scripted([refusing("503 x", retry_after="30")]) as (url, received):
        begin = time.monotonic()
        with pytest.raises(Unavailable) as raised:
            call(url)
        assert time.monotonic() - begin < 3
    assert (len(received), raised.value.retry_after_s) == (1, 30.0)


@both
def test_the_time_that_a_service_names_is_waited_for(call: Callable[..., int]) -> None:
    with scripted([refusing("503 x", retry_after="1"), READY]) as (url, _):
        begin = time.monotonic()
        assert call(url) == 0
        assert time.monotonic() - begin >= 1


@both
@pytest.mark.parametrize("body", [b"<html>", b'{"collections":5}'])
def test_a_response_of_something_else_is_named(call: Callable[..., int], body: bytes) -> None:
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (len(body), body)
    named = "GET /v1/collections: not a response of Trivium"
    with scripted([answer]) as (url, received), pytest.raises(BadReply, match=named):
        call(url)
    assert len(received) == 1


@both
def test_a_problem_of_a_proxy_keeps_its_status(call: Callable[..., int]) -> None:
    answer = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>"
    with scripted([answer]) as (url, _), pytest.raises(Unavailable, match="status 502: b'<html>'"):
        call(url)


@both
def test_a_service_that_is_not_there_is_unreachable(call: Callable[..., int]) -> None:
    with pytest.raises(Unreachable):
        call("http://127.0.0.1:1")


def test_a_search_passes_on_what_is_left_of_its_time() -> None:
    with scripted([refusing("503 x", retry_after="1"), refusing("422 x")]) as (url, received):
        with Client(url) as client, pytest.raises(InvalidRequest):
            client.search("a query", timeout_s=4.0)
        with Client(url) as client, pytest.raises(InvalidRequest):
            client.search("a query", timeout_ms=70)
    first, second, own = (int(each.partition(b'"timeout_ms":')[2].partition(b"}")[0]) for each in received)
    assert 3_000 <= first <= 3_600
    assert second <= first - 900
    assert own == 70


def test_repetitions_are_a_fraction_of_the_requests_in_the_long_run() -> None:
    budget = RetryBudget(Retries(ratio=0.1))
    error = Unavailable(Problem(title="t", status=503, detail="d"))
    repeated = 0
    for _ in range(1_000):
        budget.begin()
        repeated += budget.delay_s(error, 1, 100.0) is not None
    assert 100 <= repeated <= 110


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://localhost", ""])
def test_an_address_that_is_none_is_named(url: str) -> None:
    with pytest.raises(ValueError, match="allowed is the address of a service such as"):
        Client(url)
    with pytest.raises(ValueError, match="allowed is the address of a service such as"):
        AsyncClient(url)


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan")])
def test_a_time_limit_that_is_none_is_named(timeout_s: float) -> None:
    with Client("http://127.0.0.1:1") as client, pytest.raises(ValueError, match="timeout_s is"):
        client.search("x", timeout_s=timeout_s)


def test_errors_pass_between_processes() -> None:
    error = NotFound(Problem(title="t", status=404, detail="no document 'a'"), 1.0)
    received = pickle.loads(pickle.dumps(error))  # noqa: S301  # pickled here
    assert (type(received), str(received), received.retry_after_s) == (NotFound, "no document 'a'", 1.0)
