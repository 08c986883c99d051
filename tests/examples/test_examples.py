"""Every example runs as it is, and prints what it says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.orchestrator.served import Serve, environment

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(python: str, example: str, folder: Path, *arguments: str) -> str:
    command = [python, str(EXAMPLES / example), *arguments]
    env = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}
    return subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


def test_in_process(python: str, tmp_path: Path) -> None:
    assert run(python, "in_process.py", tmp_path).startswith("1 The Prestige ")


def test_in_process_async(python: str, tmp_path: Path) -> None:
    assert run(python, "in_process_async.py", tmp_path).startswith("1 ")


def test_over_http(python: str, serve: Serve, tmp_path: Path) -> None:
    with serve(environment(data_dir=tmp_path)) as (_, address):
        first, second = run(python, "over_http.py", tmp_path, address).splitlines()
    assert "'indexed': 1" in first
    assert second.startswith("1 ")


def test_by_client(python: str, serve: Serve, tmp_path: Path) -> None:
    with serve(environment(data_dir=tmp_path)) as (_, address):
        first, second = run(python, "by_client.py", tmp_path, address).splitlines()
    assert first == "1 indexed"
    assert second.startswith("1 ")


def test_batch_evaluation(python: str, serve: Serve, tmp_path: Path) -> None:
    with serve(environment(data_dir=tmp_path)) as (_, address):
        assert run(python, "batch_evaluation.py", tmp_path, address) == "MRR@5 1.00 of 3 queries\n"


def test_agent_over_mcp(python: str, serve: Serve, tmp_path: Path) -> None:
    with serve(environment(data_dir=tmp_path)) as (_, address):
        answer = run(python, "agent_over_mcp.py", tmp_path, address)
    assert answer == "A film by Christopher Nolan, of 2006. [prestige]\n"


def test_every_example_has_a_test() -> None:
    tests = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    of_frameworks = {"langchain_pipeline"}  # tests/frameworks
    assert {path.stem for path in EXAMPLES.glob("*.py")} <= tests | of_frameworks
