from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.telemetry.spans import StageTimings
from tests.clock import Clock


def test_a_stage_has_the_time_of_its_block_and_the_total_that_since_the_start() -> None:
    clock = Clock(100.0)
    timings = StageTimings(clock)
    clock.now += 0.25
    with timings.stage("gather"):
        clock.now += 0.5
    clock.now += 1
    assert timings.stages_ms == {"gather": 500.0}
    assert timings.total_ms() == 1_750.0


def test_a_stage_that_raises_is_measured_and_its_error_is_raised() -> None:
    clock = Clock(100.0)
    timings = StageTimings(clock)

    def failing_stage() -> None:
        with timings.stage("rerank"):
            clock.now += 0.125
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing_stage()
    assert timings.stages_ms == {"rerank": 125.0}


def test_a_stage_contains_the_stages_inside_it() -> None:
    clock = Clock(100.0)
    timings = StageTimings(clock)
    with timings.stage("gather"):
        clock.now += 1
        with timings.stage("vector"):
            clock.now += 2
    assert timings.stages_ms == {"vector": 2_000.0, "gather": 3_000.0}


def test_time_that_was_measured_elsewhere_is_recorded_as_it_is() -> None:
    timings = StageTimings(Clock(100.0))
    timings.record("plan", 1.5)
    assert timings.stages_ms == {"plan": 1.5}
    assert timings.total_ms() == 0.0


@given(st.lists(st.integers(0, 1_000), max_size=8))
def test_stages_one_after_the_other_add_up_to_the_total(durations_s: list[int]) -> None:
    clock = Clock(100.0)
    timings = StageTimings(clock)
    for number, duration_s in enumerate(durations_s):
        with timings.stage(f"stage {number}"):
            clock.now += duration_s
    assert sum(timings.stages_ms.values()) == timings.total_ms() == sum(durations_s) * 1_000


def test_without_a_clock_it_measures_real_time() -> None:
    timings = StageTimings()
    first = timings.total_ms()
    assert 0 <= first <= timings.total_ms()
