"""Upkeep: what depends on the documents is measured again without a person, by one process at a time."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import anyio
import httpx
import psutil
import pytest

from adapters import Document
from adapters.storage import files
from fusion.confidence import Calibration
from orchestrator.bootstrap import open_service
from orchestrator.http.app import create_app
from orchestrator.measurement.calibration import (
    CALIBRATION_FILE,
    ConfidenceCalibrations,
    ScopeCalibration,
)
from orchestrator.measurement.scope_file import Measurements
from orchestrator.service.maintenance import MaintenanceService
from orchestrator.service.upkeep import LOCK_FILE, Upkeep
from orchestrator.settings import Settings
from orchestrator.settings.loading import environment_of
from tests.clock import Clock
from tests.orchestrator.bootstrap.helpers import index
from tests.orchestrator.service.health_helpers import service as health_of

pytestmark = pytest.mark.anyio
DOCUMENTS = [
    Document(id=f"d{number}", text=f"Report {number} about Lake Geneva and Mont Blanc.") for number in range(60)
]
_WRITTEN = 3


class Measurement:
    """Stands for the other process: it counts its runs, and writes a calibration if it succeeds."""

    def __init__(self, folder: Path, exit_code: int = 0) -> None:
        self.runs = 0
        self.exit_code = exit_code
        self._file = folder / CALIBRATION_FILE

    async def __call__(self) -> int:
        self.runs += 1
        if not self.exit_code:
            scopes = [ScopeCalibration("t", "e", "normal", {"model": (("vector", Calibration(0.3, 0.1)),)})]
            ConfidenceCalibrations(self._file).save(Measurements(_WRITTEN, scopes))
        return self.exit_code


def maintenance_of(folder: Path) -> MaintenanceService:
    return health_of(folder, generation=_WRITTEN).maintenance


def upkeep_of(folder: Path, measurement: Measurement, now: Clock, interval_s: float = 100) -> Upkeep:
    return Upkeep(maintenance_of(folder), folder, interval_s, measurement, now)


async def test_a_process_that_may_not_write_measures_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measurement = Measurement(tmp_path)
    upkeep = upkeep_of(tmp_path, measurement, Clock(1_000.0))
    monkeypatch.setattr(os, "access", lambda *_: False)
    await upkeep.check()
    assert measurement.runs == 0
    monkeypatch.undo()
    await upkeep.check()
    assert measurement.runs == 1


@pytest.mark.process
async def test_it_measures_in_another_process_after_writes_and_searches_use_the_result(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.bootstrap.background._PAUSE_S", 0.001)
    async with open_service(chosen.changed(upkeep_interval_s=1)) as service:
        await service.upkeep.check()
        assert not (chosen.storage.data_dir / CALIBRATION_FILE).exists()  # nothing was written yet
        await index(service, DOCUMENTS)
        assert service.maintenance.outdated()
        with anyio.fail_after(60):
            await service.upkeep.check()
        assert service.upkeep.state == "idle"
        service.maintenance.refresh()
        assert not service.maintenance.trust_outdated()
        assert service.maintenance.calibrations.calibrations(service.anonymous.scope, "normal", "model")


@pytest.mark.process
def test_a_stopped_measurement_ends_with_the_service_that_started_it(python: str, chosen: Settings) -> None:
    """The service is killed, so that it can do nothing about it."""
    code = (
        "import asyncio; from orchestrator.bootstrap.background import measure_in_process;"
        "from orchestrator.settings import load; asyncio.run(measure_in_process(load()))"
    )
    environment = {**os.environ, **environment_of(chosen)}
    with subprocess.Popen([python, "-c", code], env=environment, start_new_session=True) as service:
        process, deadline = psutil.Process(service.pid), time.monotonic() + 60
        while not (children := process.children()) or children[0].status() != psutil.STATUS_STOPPED:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        service.kill()
    psutil.wait_procs(children, timeout=20)
    assert not children[0].is_running()


async def test_a_failure_is_shown_and_not_repeated_at_once(tmp_path: Path) -> None:
    now, measurement = Clock(1_000_000_000.0), Measurement(tmp_path, exit_code=3)
    upkeep = upkeep_of(tmp_path, measurement, now)
    for _ in range(3):
        await upkeep.check()
    assert (measurement.runs, upkeep.state) == (1, "failed with exit code 3")
    now.now += 100
    await upkeep.check()
    assert measurement.runs == 2


async def test_nothing_is_measured_twice_within_the_interval(tmp_path: Path) -> None:
    measurement = Measurement(tmp_path)
    ConfidenceCalibrations(tmp_path / CALIBRATION_FILE).save(Measurements(1, []))
    written_at = (tmp_path / CALIBRATION_FILE).stat().st_mtime
    now = Clock(written_at + 99)
    upkeep = upkeep_of(tmp_path, measurement, now)
    await upkeep.check()
    assert measurement.runs == 0
    now.now = written_at + 101
    await upkeep.check()
    assert measurement.runs == 1


async def test_one_process_at_a_time(tmp_path: Path) -> None:
    measurement = Measurement(tmp_path)
    upkeep = upkeep_of(tmp_path, measurement, Clock(1_000_000_000.0))
    with files.exclusive_now(tmp_path / LOCK_FILE) as has_lock:
        assert has_lock
        await upkeep.check()
        assert measurement.runs == 0
    await upkeep.check()
    assert measurement.runs == 1


async def test_an_interval_of_0_switches_it_off(tmp_path: Path) -> None:
    measurement = Measurement(tmp_path)
    upkeep = upkeep_of(tmp_path, measurement, Clock(1_000_000_000.0), interval_s=0)
    await upkeep.check()
    assert (measurement.runs, upkeep.state) == (0, "off")


@pytest.mark.parametrize(("interval_s", "state"), [(300, "idle"), (0, "off")])
async def test_readyz_shows_it_if_it_is_asked(chosen: Settings, interval_s: int, state: str) -> None:
    app = create_app(chosen.changed(upkeep_interval_s=interval_s))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            assert (await client.get("/readyz?verbose")).json()["upkeep"] == state
            assert "upkeep" not in (await client.get("/readyz")).json()


@pytest.mark.parametrize(("documents", "interval_s"), [(101, 5), (300, 6), (2_000, 40), (1_000_000, 100)])
async def test_few_documents_are_measured_soon_after_a_write(tmp_path: Path, documents: int, interval_s: float) -> None:
    now, measurement = Clock(1_000_000_000.0), Measurement(tmp_path, exit_code=3)
    upkeep = Upkeep(maintenance_of(tmp_path), tmp_path, 100, measurement, now, documents=lambda: documents)
    await upkeep.check()
    now.now += interval_s - 0.1
    await upkeep.check()
    assert measurement.runs == 1
    now.now += 0.1
    await upkeep.check()
    assert measurement.runs == 2
