"""The example of LangChain runs as it is, and prints what it says."""

from __future__ import annotations

from pathlib import Path

from tests.examples.test_examples import run
from tests.orchestrator.served import Serve, environment


def test_langchain_pipeline(python: str, serve: Serve, tmp_path: Path) -> None:
    with serve(environment(data_dir=tmp_path)) as (_, address):
        answer = run(python, "langchain_pipeline.py", tmp_path, address)
    assert answer == "A film by Christopher Nolan about two magicians. [prestige]\n"
