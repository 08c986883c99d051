from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from orchestrator.cli import main
from orchestrator.demo import run
from orchestrator.demo.pydocs import documents


def test_the_demo_indexes_once_and_answers_with_provenance(monkeypatch, tmp_path, model_dir) -> None:
    """All of the command, on the part of the documentation that it asks about: all of it takes a minute."""
    some = [d for d in documents() if d.id.split(".")[0] in {"asyncio", "subprocess", "datetime"}]
    assert len(some) > 100
    monkeypatch.setattr(run, "documents", lambda: some)
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))
    for again in (False, True):
        result = CliRunner().invoke(main, ["demo", "--no-serve"], catch_exceptions=False)
        assert result.exit_code == 0
        assert f"{len(some):,} documents and" in result.stdout
        assert ("they are indexed already" in result.stdout) is again
        for query, expected in zip(run.QUERIES, ("subprocess", "asyncio.threads", "datetime.date"), strict=True):
            answer = result.stdout.split(query)[1]
            assert re.search(rf"│ 1 │ {re.escape(expected)}", answer), answer[:600]


@pytest.mark.parametrize("port", [8080, 9000])
def test_the_example_names_the_port(port: int) -> None:
    assert f"127.0.0.1:{port}/v1/search" in run.example(port)
