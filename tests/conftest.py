"""What many tests start from. Real engines throughout: nothing here stands in for anything of ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from adapters import Document, Entry, Record, Scope
from adapters.embed.minilm import MiniLM
from adapters.embedded import Library
from adapters.graph.names import mentioned
from adapters.graph.part import GraphPart
from adapters.keyword.embedded import KeywordPart
from adapters.vector.embedded import VectorPart
from orchestrator import settings as settings_
from orchestrator.settings import Settings
from tests.secrets import record_everything
from tests.servers import start
from tests.servers.start import NotHere

settings.register_profile("ours", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
settings.load_profile("ours")

record_everything()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What looks at all that was logged comes last."""
    items.sort(key=lambda item: item.path.name == "test_logs.py")


SCOPE = Scope()
DIMENSION = 16


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TRIVIUM_") and not name.startswith("TRIVIUM_TEST_")]:
        if name != "TRIVIUM_MODEL_DIR":
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def server_url() -> Iterator[Callable[[str], str]]:
    """The address of a real server: the environment's, or of one that is started for this session.

    Where it cannot be had the test is skipped by name; with ``TRIVIUM_TEST_SERVERS=required`` it fails.
    """
    running = ExitStack()
    begun: dict[str, str | NotHere] = {}

    def url(server: str) -> str:
        if given := os.environ.get(f"TRIVIUM_TEST_{server.upper()}_URL"):
            return given
        if server == "qdrant":
            pytest.skip("no Qdrant server can be had from a package: set TRIVIUM_TEST_QDRANT_URL")
        if server not in begun:
            try:
                begun[server] = running.enter_context(getattr(start, server)())
            except NotHere as error:
                begun[server] = error
        address = begun[server]
        if isinstance(address, str):
            return address
        if os.environ.get("TRIVIUM_TEST_SERVERS") == "required":
            pytest.fail(str(address))
        pytest.skip(str(address))

    with running:
        yield url


@pytest.fixture(scope="session")
def model_dir() -> Path:
    """The model of this machine: built once, as a user's is, and kept."""
    return settings_.read().model_dir


@pytest.fixture(scope="session")
def model(model_dir: Path) -> MiniLM:
    return MiniLM(model_dir)


@pytest.fixture
def chosen(tmp_path: Path, model_dir: Path) -> Settings:
    # Patient, so that a loaded machine does not turn an answer into a degraded one.
    return settings_.read(data_dir=tmp_path / "data", model_dir=model_dir, source_timeout_ms=10_000)


@pytest.fixture
def open_library(tmp_path: Path) -> Callable[[], Library]:
    """Opens the same folder each time it is called: once more is a restart, or another process."""

    def open_() -> Library:
        return Library(tmp_path / "index", (VectorPart(), KeywordPart(), GraphPart()), "test-1")

    return open_


def unit(seed: int, dimension: int = DIMENSION) -> np.ndarray:
    """A random direction, the same for the same seed."""
    vector = np.random.default_rng(seed).normal(size=dimension).astype(np.float32)
    return vector / np.linalg.norm(vector)


def entry(id_: str, text: str = "", *, seed: int = 0, scope: Scope = SCOPE, **fields: object) -> Entry:
    document = Document(id=id_, text=text or f"text of {id_}", **fields)  # type: ignore[arg-type]
    entities = document.entities if document.entities is not None else mentioned(document.text)
    return Entry(Record(scope.tenant, scope.environment, document, entities), unit(seed))
