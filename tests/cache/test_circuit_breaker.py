from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache import CircuitBreaker
from tests.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


def fail(breaker: CircuitBreaker, times: int) -> None:
    for _ in range(times):
        assert breaker.allows()
        breaker.failed()


def test_the_circuit_opens_after_the_maximum_of_failures_in_a_row(clock: Clock) -> None:
    breaker = CircuitBreaker(3, 10.0, clock)
    fail(breaker, 2)
    breaker.succeeded()
    fail(breaker, 2)
    assert breaker.state == "closed"
    fail(breaker, 1)
    assert breaker.state == "open"
    assert not breaker.allows()


def test_after_the_reset_time_one_probe_is_allowed(clock: Clock) -> None:
    breaker = CircuitBreaker(1, 10.0, clock)
    fail(breaker, 1)
    clock.now = 9.9
    assert not breaker.allows()
    clock.now = 10.0
    assert breaker.state == "half-open"
    assert [breaker.allows() for _ in range(3)] == [True, False, False]
    breaker.succeeded()
    assert breaker.state == "closed"
    assert breaker.allows()


def test_a_probe_that_fails_restarts_the_reset_time(clock: Clock) -> None:
    breaker = CircuitBreaker(5, 10.0, clock)
    fail(breaker, 5)
    clock.now = 10.0
    fail(breaker, 1)
    clock.now = 19.9
    assert not breaker.allows()
    clock.now = 20.0
    assert breaker.allows()


def test_an_abandoned_probe_allows_another_one(clock: Clock) -> None:
    breaker = CircuitBreaker(1, 10.0, clock)
    fail(breaker, 1)
    clock.now = 10.0
    assert breaker.allows()
    breaker.abandoned()
    assert breaker.allows()


def test_a_late_success_does_not_close_an_open_circuit(clock: Clock) -> None:
    breaker = CircuitBreaker(1, 10.0, clock)
    assert breaker.allows()  # begins before the circuit opens and succeeds after it
    fail(breaker, 1)
    breaker.succeeded()
    assert breaker.state == "open"
    assert not breaker.allows()


def test_a_late_failure_restarts_the_reset_time(clock: Clock) -> None:
    breaker = CircuitBreaker(1, 10.0, clock)
    assert breaker.allows()  # begins before the circuit opens and fails at 4 seconds
    fail(breaker, 1)
    clock.now = 4.0
    breaker.failed()
    clock.now = 13.9
    assert breaker.state == "open"
    clock.now = 14.0
    assert breaker.state == "half-open"


steps = st.lists(st.sampled_from(["allows", "succeeded", "failed", "abandoned"]) | st.floats(0.0, 15.0), max_size=60)


@given(steps, st.integers(1, 4))
def test_at_most_one_probe_is_allowed_between_two_reports(steps: list[str | float], max_failures: int) -> None:
    """A number in ``steps`` is seconds that pass; a name is the method called."""
    clock = Clock()
    breaker = CircuitBreaker(max_failures, 10.0, clock)
    probes = 0
    for step in steps:
        if isinstance(step, float):
            clock.now += step
            continue
        closed = breaker.state == "closed"
        allowed = getattr(breaker, step)()
        if step == "allows":
            probes += bool(allowed) and not closed
        else:
            probes = 0
        assert probes <= 1
        assert not closed or step != "allows" or allowed


@given(steps, st.integers(1, 4))
def test_a_circuit_opens_only_at_the_maximum_of_failures_without_a_success(
    steps: list[str | float], max_failures: int
) -> None:
    clock = Clock()
    breaker = CircuitBreaker(max_failures, 10.0, clock)
    failures = 0
    opened_at = 0.0
    for step in steps:
        before = breaker.state
        if isinstance(step, float):
            clock.now += step
        else:
            getattr(breaker, step)()
        failures += step == "failed"
        if step == "succeeded" and breaker.state == "closed":
            failures = 0
        if step == "failed" and breaker.state == "open":
            opened_at = clock.now
        assert (breaker.state == "closed") == (failures < max_failures)
        if before != "open" and breaker.state == "open":
            assert step == "failed"
        if breaker.state == "open":
            assert clock.now - opened_at < 10.0
