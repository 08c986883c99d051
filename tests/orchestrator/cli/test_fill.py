"""A source is moved to a server as docs/how-to/run-on-servers.md says, with the documents of the data folder."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import main

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "run-on-servers.md"
DOCUMENTS = "\n".join(f'{{"id":"{n}","text":"document number {n} about stars"}}' for n in range(5))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))
    return tmp_path


def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, arguments, input=stdin, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def found(mode: str) -> set[str]:
    response = json.loads(run("search", "stars", "--mode", mode, "--json")[1])
    assert response["degraded"] == []
    return {hit["id"] for hit in response["hits"]}


@pytest.mark.server
def test_one_source_is_moved_to_a_server(
    folder: Path, server_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("index", "-", stdin=DOCUMENTS)[0] == 0
    assert run("delete", "0")[0] == 0
    monkeypatch.setenv("TRIVIUM_KEYWORD", server_url("opensearch"))
    monkeypatch.setenv("TRIVIUM_INDEX_NAME", f"fill-{uuid4().hex}")
    code, out, err = run("index", "-", stdin=DOCUMENTS)
    assert (code, out, err.count("\n"), "`trivium fill`" in err) == (1, "", 1, True)
    commands = re.findall(r"^trivium (\w+)", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert commands == ["doctor", "fill", "serve"]
    assert run("doctor")[0] == 1
    code, out, _ = run("fill")
    assert (code, "index: built for these settings with 4 documents" in out) == (0, True)
    assert out.endswith("keyword: 4 documents written\n")
    for mode in ("vector", "keyword"):
        assert found(mode) == {"1", "2", "3", "4"}
    assert run("doctor")[0] == 0
    assert run("fill")[1] == "no server lacks documents\n"
    assert run("index", "-", stdin=DOCUMENTS)[0] == 0
    assert found("keyword") == found("vector") == {"0", "1", "2", "3", "4"}
    assert "'vectr' is no source on a server, allowed are keyword" in run("fill", "vectr")[2]


def test_without_servers_there_is_nothing_to_fill(folder: Path) -> None:
    code, _, err = run("fill")
    assert (code, "no source is on a server" in err) == (2, True)
