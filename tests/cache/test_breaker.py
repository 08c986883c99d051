from __future__ import annotations

import pytest

from cache import Breaker


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def failed(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        assert breaker.allows()
        breaker.failed()


def test_it_opens_after_so_many_failures_in_a_row(clock: Clock) -> None:
    breaker = Breaker(3, 10.0, clock)
    failed(breaker, 2)
    breaker.succeeded()
    failed(breaker, 2)
    assert breaker.state == "closed"
    failed(breaker, 1)
    assert breaker.state == "open"
    assert not breaker.allows()


def test_after_a_pause_one_may_try(clock: Clock) -> None:
    breaker = Breaker(1, 10.0, clock)
    failed(breaker, 1)
    clock.now = 9.9
    assert not breaker.allows()
    clock.now = 10.0
    assert breaker.state == "half-open"
    assert [breaker.allows() for _ in range(3)] == [True, False, False]
    breaker.succeeded()
    assert breaker.state == "closed"
    assert breaker.allows()


def test_a_try_that_fails_begins_another_pause(clock: Clock) -> None:
    breaker = Breaker(5, 10.0, clock)
    failed(breaker, 5)
    clock.now = 10.0
    failed(breaker, 1)
    clock.now = 19.9
    assert not breaker.allows()
    clock.now = 20.0
    assert breaker.allows()


def test_a_try_that_is_given_up_says_nothing(clock: Clock) -> None:
    breaker = Breaker(1, 10.0, clock)
    failed(breaker, 1)
    clock.now = 10.0
    assert breaker.allows()
    breaker.abandoned()
    assert breaker.allows()
