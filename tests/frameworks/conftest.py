"""The retrievers of frameworks, in an environment of their own: ``make test-frameworks``."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from orchestrator.client import Client
from tests.orchestrator.served import Serve, environment

collect_ignore_glob = ["test_*"] if find_spec("langchain_core") is None else []

DOCUMENTS = [
    {
        "id": f"film{number}",
        "title": f"Film {number}",
        "text": f"A film about magicians and rivalry, number {number}.",
        "url": f"https://example.org/{number}",
        "tags": ["film"],
        "created_at": "2024-05-01",
        "metadata": {"year": 2000 + number, "kind": "drama" if number % 2 else "comedy"},
    }
    for number in range(12)
]


@pytest.fixture(scope="session")
def url(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service with films."""
    folder = tmp_path_factory.mktemp("frameworks")
    with serve(environment(data_dir=folder, source_timeout_ms=10_000)) as (_, address):
        with Client(address, timeout_s=30) as client:
            assert client.index(DOCUMENTS).indexed == len(DOCUMENTS)
        yield address


@pytest.fixture(scope="session")
def keyed_url(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service that refuses callers without a key."""
    folder = tmp_path_factory.mktemp("keyed")
    keys: Path = folder / "keys"
    keys.touch()
    with serve(environment(data_dir=folder / "data", keys_file=keys)) as (_, address):
        yield address
