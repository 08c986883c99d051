"""A service that cannot start says why in one line, without a traceback, and ends with exit code 1."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import trivium
from tests.orchestrator.served import environment
from tests.servers.start import free_port

pytestmark = pytest.mark.process

Start = Callable[[dict[str, str]], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def start(python: str) -> Start:
    def run(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [python, "-m", "orchestrator", "serve", "--port", str(free_port()), *arguments]
        return subprocess.run(command, env=env, timeout=60, check=False, capture_output=True, text=True)

    return run


_OF_UVICORN = r"Application startup failed. Exiting.|Child process \[\d+\] failed to start, .*"


def reasons(stderr: str) -> list[str]:
    """The reasons in the log lines of errors."""
    lines = [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]
    messages = [line["message"] for line in lines if line.get("level") == "error"]
    return [message for message in messages if not re.fullmatch(_OF_UVICORN, message)]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("data_dir", "/dev/null/data", "/dev/null/data/generations/generations.json: Not a directory"),
        ("cache", "redis://127.0.0.1:1/0?unknown=1", "TRIVIUM_CACHE has an option that Redis does not have"),
        ("cache", "rediss://127.0.0.1:1/0?ssl_cert_reqs=wrong", "TRIVIUM_CACHE has an option that Redis does not have"),
        ("reranker", "python://nowhere:function", "nowhere"),
    ],
)
def test_a_value_that_is_found_wrong_when_it_is_used(
    start: Start, tmp_path: Path, model_dir: Path, name: str, value: str, reason: str
) -> None:
    done = start(environment(**{"data_dir": tmp_path, "model_dir": model_dir, name: value}))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (found,) = reasons(done.stderr)
    assert found.startswith("the service cannot start: ")
    assert reason in found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, model_dir: Path) -> Path:
    """A data folder with documents."""
    path = tmp_path_factory.mktemp("data")
    with trivium.open(path, model_dir=model_dir) as index:
        index.add({"id": str(number), "text": f"document {number}"} for number in range(60))
        index.delete("7")
        index.tidy()
    return path


@pytest.mark.parametrize("workers", [1, 2])
def test_a_damaged_index_is_named(
    start: Start, folder: Path, tmp_path: Path, model_dir: Path, python: str, workers: int
) -> None:
    copy = shutil.copytree(folder, tmp_path / "data")
    (copy / "index" / "manifest.json").write_text("{")
    command = [python, "-m", "orchestrator", "serve", "--port", str(free_port()), "--workers", str(workers)]
    env = environment(data_dir=copy, model_dir=model_dir)
    done = subprocess.run(command, env=env, timeout=50, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert {str(copy / "index" / "manifest.json") in each for each in reasons(done.stderr)} == {True}


def test_what_can_be_measured_again_stops_no_start(folder: Path, tmp_path: Path, model_dir: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "data")
    damaged = [copy / "confidence.json", copy / "graph-trust.json", copy / "index" / "centrality.msgpack"]
    before = [path.read_bytes() for path in damaged]
    for path in damaged:
        path.write_bytes(b"damaged")
    with trivium.open(copy, model_dir=model_dir) as index:
        assert index.search("document", boosts={"centrality": True}).hits
        index.tidy()
    assert [path.read_bytes() for path in damaged] == before
