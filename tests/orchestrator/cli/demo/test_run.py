from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.demo import steps
from orchestrator.cli.demo.pydocs import python_documents
from orchestrator.cli.main import main


@pytest.mark.slow
def test_the_demo_indexes_once_and_shows_the_rank_of_each_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model_dir: Path
) -> None:
    """The complete command on the part of the documentation that its queries are about: all of it takes a minute."""
    documents = [d for d in python_documents() if d.id.split(".")[0] in {"asyncio", "subprocess", "datetime"}]
    assert len(documents) > 100
    monkeypatch.setattr(steps, "python_documents", lambda: documents)
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))
    for is_second in (False, True):
        result = CliRunner().invoke(main, ["demo", "--no-serve"], catch_exceptions=False)
        assert result.exit_code == 0
        assert f"{len(documents):,} documents and" in result.stdout
        assert ("they are indexed already" in result.stdout) is is_second
        for query, expected in zip(steps.QUERIES, ("subprocess", "asyncio.threads", "datetime.date"), strict=True):
            response = result.stdout.split(query)[1]
            assert re.search(rf"│ 1 │ {re.escape(expected)}", response), response[:600]


@pytest.mark.parametrize("port", [8080, 9000])
def test_the_example_request_contains_the_port(port: int) -> None:
    assert f"127.0.0.1:{port}/v1/search" in steps.example_request(port)
