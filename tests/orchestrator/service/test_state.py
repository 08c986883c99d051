from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters import Damaged
from orchestrator.schema.operations import ReplicaLag
from orchestrator.service.state import StateReader
from tests.clock import Clock


class Engine:
    """A stand-in for the embedded engine: two generations."""

    def __init__(self) -> None:
        self.opened, self.newest = 3, 3
        self.is_damaged = False

    def generation(self) -> int:
        return self.opened

    def newest_generation(self) -> int:
        if self.is_damaged:
            raise Damaged("the manifest is damaged")
        return self.newest


def reader(engine: Engine | None, replication: Any, clock: Clock) -> StateReader:
    admission = cast(Any, SimpleNamespace(running=2, waiting=1))
    return StateReader(
        admission,
        lambda: {"vector": "open"},
        {"graph": cast(Any, SimpleNamespace(is_warming=True))},
        Path("/"),
        engine,
        replication,
        lambda: 9,
        lambda: "build",
        lambda: clock.now,
    )


def test_the_state_has_the_load_the_circuits_and_the_generation() -> None:
    state = reader(Engine(), None, Clock(100.0)).read()
    assert (state.running, state.waiting, state.circuits) == (2, 1, {"vector": "open"})
    assert state.warming == {"graph": True}
    assert (state.generation, state.generation_lag_s, state.build_id, state.lags) == (9, 0.0, "build", {})


def test_a_process_lags_from_when_a_newer_commit_was_first_seen_until_it_is_opened() -> None:
    engine, clock = Engine(), Clock(100.0)
    states = reader(engine, None, clock)
    assert states.read().generation_lag_s == 0
    engine.newest = 5
    assert states.read().generation_lag_s == 0
    clock.now += 30
    assert states.read().generation_lag_s == 30
    engine.opened = 5
    assert states.read().generation_lag_s == 0


def test_a_manifest_that_cannot_be_read_counts_as_a_lag() -> None:
    engine, clock = Engine(), Clock(100.0)
    states = reader(engine, None, clock)
    engine.is_damaged = True
    states.read()
    clock.now += 7
    assert states.read().generation_lag_s == 7


def test_the_lag_of_a_replica_is_that_of_its_oldest_write_and_its_name_has_no_address(tmp_path: Path) -> None:
    unapplied = {"opensearch http://secret": [40.0, 50.0], "bolt //host": []}
    replication = SimpleNamespace(replicas=unapplied, unapplied_at=unapplied.__getitem__, log_size=lambda: (300, 1_000))
    state = reader(None, replication, Clock(100.0)).read()
    assert (state.log_bytes, state.log_max_bytes) == (300, 1_000)
    lags = state.lags
    assert lags == {"opensearch": ReplicaLag(2, 60.0), "bolt": ReplicaLag(0, 0.0)}


@pytest.mark.parametrize("age_s", [0.0, 90.0])
def test_a_write_of_a_clock_that_is_ahead_has_no_negative_age(age_s: float) -> None:
    replication = SimpleNamespace(replicas=["a"], unapplied_at=lambda _: [200.0], log_size=lambda: (0, 0))
    assert reader(None, replication, Clock(100.0 + age_s)).read().lags == {"a": ReplicaLag(1, 0.0)}
