"""Fixtures for all tests. Real engines throughout: nothing here stands in for anything of the project."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from adapters import Document, Record, Scope
from adapters.encoders.minilm import MiniLM
from adapters.engine import EmbeddedIndex
from adapters.graph.component import GraphComponent
from adapters.graph.names import mentioned
from adapters.keyword.component import KeywordComponent
from adapters.ports import VectorRecord
from adapters.vector.embedded import VectorComponent
from orchestrator.settings import Settings, load
from tests.orchestrator.served import Serve, serving
from tests.random_cases import IS_NIGHTLY
from tests.secrets import logged_secrets, record_all_logs
from tests.servers import start
from tests.servers.start import NotAvailable

settings.register_profile("trivium", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
settings.register_profile("nightly", settings.get_profile("trivium"), max_examples=1_000)
settings.load_profile("nightly" if IS_NIGHTLY else "trivium")

record_all_logs()
# The servers of the tests live for minutes: with the first compiler alone they start in half the time.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


MARKERS = {"server_url": "server", "redis_on": "server", "program": "server", "serve": "process", "python": "process"}
"""The marker of a test, by the fixture with which it starts something. ``make test`` leaves out all that are marked."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark what starts a server or a process, before ``-m`` chooses; group tests by file, all of a server together.

    Line coverage counts examples only: measuring it takes two thirds more time, most of it in tests with thousands of
    random cases, which reach no line that no example reaches.
    """
    for item in items:
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in MARKERS:
                item.add_marker(MARKERS[fixture])
        if item.get_closest_marker("hypothesis") or item.get_closest_marker("slow"):
            item.add_marker("no_cover")
    with_server = {item.path for item in items if item.get_closest_marker("server")}
    for item in items:
        item.add_marker(pytest.mark.xdist_group("servers" if item.path in with_server else str(item.path)))
    return (yield)


def pytest_collection_finish() -> None:
    """Modules and tests stay: each in-process service would collect them again when it starts."""
    gc.freeze()


SCOPE = Scope()
DIMENSION = 16


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def without_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TRIVIUM_") and not name.startswith("TRIVIUM_TEST_")]:
        if name != "TRIVIUM_MODEL_DIR":
            monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def no_secret_is_logged() -> Iterator[None]:
    """At the end, everything that the service logged in all tests is searched for the secrets of the tests."""
    yield
    assert logged_secrets() == set()


@pytest.fixture(scope="session", autouse=True)
def one_encoder_for_all_tests() -> Iterator[None]:
    """Loading the model takes a tenth of a second, for each service that a test opens."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adapters.encoders.address.MiniLM", cache(MiniLM))
        yield


@pytest.fixture(scope="session")
def serve() -> Serve:
    """Starts the service as a process."""
    return serving


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter, for a process that a test starts."""
    return sys.executable


@pytest.fixture
def redis_on() -> Iterator[Callable[[int], tuple[str, subprocess.Popen[bytes]]]]:
    """Starts a Redis server at a port, for one test, which may suspend it: its address and its process."""
    with ExitStack() as running:

        def started(port: int) -> tuple[str, subprocess.Popen[bytes]]:
            try:
                return running.enter_context(start.redis_on(port))
            except NotAvailable as error:
                without(error)

        yield started


@pytest.fixture(scope="session")
def server_url() -> Iterator[Callable[[str], str]]:
    """The address of a real server: from the environment, or of one that is started for this session.

    Where a server is not available the test is skipped by name; with ``TRIVIUM_TEST_SERVERS=required`` it fails.
    """
    running = ExitStack()
    started: dict[str, str | NotAvailable] = {}

    def url(server: str) -> str:
        if configured := os.environ.get(f"TRIVIUM_TEST_{server.upper()}_URL"):
            return configured
        if server == "qdrant" and not shutil.which("qdrant"):
            pytest.skip("no package contains a Qdrant server: set TRIVIUM_TEST_QDRANT_URL, or add one to PATH")
        if server not in started:
            try:
                started[server] = running.enter_context(getattr(start, server)())
            except NotAvailable as error:
                started[server] = error
        address = started[server]
        return address if isinstance(address, str) else without(address)

    with running:
        yield url


@pytest.fixture(scope="session")
def program() -> Callable[[str, str], str]:
    """The path of a program; the second argument says what contains it. Where it is missing: as for a server."""

    def path(name: str, advice: str) -> str:
        try:
            return start.find_program(name, advice)
        except NotAvailable as error:
            return without(error)

    return path


def without(error: NotAvailable) -> NoReturn:
    """Skip a test whose server or program is missing, or let it fail with ``TRIVIUM_TEST_SERVERS=required``."""
    if os.environ.get("TRIVIUM_TEST_SERVERS") == "required":
        pytest.fail(str(error))
    pytest.skip(str(error))


@pytest.fixture(scope="session")
def model_dir() -> Path:
    """The model folder of this machine: what is made there once is there for all tests, as on a user's machine."""
    return load().storage.model_dir


@pytest.fixture(scope="session")
def model() -> MiniLM:
    return MiniLM()


@pytest.fixture
def chosen(tmp_path: Path, model_dir: Path) -> Settings:
    # A long time limit, so that a loaded machine does not turn a response into a degraded one.
    folder = tmp_path / "data"
    return load(data_dir=folder, model_dir=model_dir, source_timeout_ms=10_000, upkeep_interval_s=0)


@pytest.fixture
def open_index(tmp_path: Path) -> Callable[[], EmbeddedIndex]:
    """Opens the same folder each time it is called: a second call is a restart, or another process."""

    def open_() -> EmbeddedIndex:
        return EmbeddedIndex(tmp_path / "index", (VectorComponent(), KeywordComponent(), GraphComponent()), "test-1")

    return open_


def unit(seed: int, dimension: int = DIMENSION) -> np.ndarray:
    """A random direction, the same for the same seed."""
    vector = np.random.default_rng(seed).normal(size=dimension).astype(np.float32)
    return vector / np.linalg.norm(vector)


def vector_record(id_: str, text: str = "", *, seed: int = 0, scope: Scope = SCOPE, **fields: object) -> VectorRecord:
    document = Document(id=id_, text=text or f"text of {id_}", **fields)  # type: ignore[arg-type]
    entities = document.entities if document.entities is not None else mentioned(document.text)
    return VectorRecord(Record(scope.tenant, scope.environment, document, entities), unit(seed)[np.newaxis])
