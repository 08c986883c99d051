"""``trivium search --batch``: a response for each line, also after an interruption."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import main
from tests.orchestrator.served import Serve, environment

LINES = (
    '{"id":"nolan","title":"Christopher Nolan","text":"A director of films."}\n{"id":"pasta","text":"Boil water."}\n'
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))
    (tmp_path / "documents.ndjson").write_text(LINES)
    return tmp_path


def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, arguments, input=stdin, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


REQUESTS = '{"query": "film", "limit": 1}\n\n{"query": ""}\n{"query": "director"}\nnonsense\n'


def test_a_batch_has_a_response_for_each_line(folder: Path) -> None:
    run("index", str(folder / "documents.ndjson"))
    (folder / "requests.ndjson").write_text(REQUESTS)
    code, out, err = run("search", "--batch", str(folder / "requests.ndjson"))
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["line"], line["status"]) for line in lines] == [(1, 200), (3, 422), (4, 200), (5, 422)]
    assert len(lines[0]["response"]["hits"]) == 1
    assert code == 1
    assert re.search(r"^2 lines answered, 2 with status 422; took [\d.]+ s$", err, re.MULTILINE)
    assert run("search", "--batch", "-", stdin='{"query": "film"}\n')[0] == 0


def test_a_batch_goes_on_after_its_last_whole_line(folder: Path) -> None:
    run("index", str(folder / "documents.ndjson"))
    (folder / "requests.ndjson").write_text(REQUESTS)
    batch = ("search", "--batch", str(folder / "requests.ndjson"), "--output", str(folder / "responses.ndjson"))
    assert run(*batch)[0] == 1
    whole = (folder / "responses.ndjson").read_bytes()
    assert "exists; --resume continues it" in run(*batch)[2]
    (folder / "responses.ndjson").write_bytes(whole[: len(whole.splitlines(keepends=True)[0]) + 20])
    assert run(*batch, "--resume")[0] == 1
    assert run(*batch, "--resume")[0] == 1  # nothing is left, but some lines have no response
    lines = [json.loads(line) for line in (folder / "responses.ndjson").read_text().splitlines()]
    assert [line["line"] for line in lines] == [1, 3, 4, 5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search",), "give a QUERY, --like, a --filter to list what matches, or --batch"),
        (("search", "x", "--batch", "-"), "query is for one search: the lines of a batch have fields of their own"),
        (("search", "--batch", "-", "--limit", "3"), "--limit is for one search"),
        (("search", "--batch", "-", "--filter", "{"), "--filter is for one search"),
        (("search", "--batch", "-", "--output", "."), ". is a folder, allowed is a file"),
        (("search", "--batch", "nowhere.ndjson"), "there is no file nowhere.ndjson"),
        (("search", "--batch", "-", "--resume"), "--resume is for --output"),
        (("search", "--batch", "-", "--output", "nowhere/x"), "nowhere is not a folder"),
    ],
)
def test_a_batch_that_cannot_begin_says_why(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    code, _, err = run(*arguments, stdin="")
    assert (code, message in err.replace("\n", " ")) == (2, True), err


def test_a_batch_of_a_service(folder: Path, serve: Serve) -> None:
    (folder / "requests.ndjson").write_text(REQUESTS)
    too_long = b'{"query": "' + b"x" * 1_048_576 + b'"}\n'
    with (folder / "requests.ndjson").open("ab") as file:
        file.write(too_long + b'{"query": "film", "fi\\u0065lds": ["title"]}')
    with serve(environment(data_dir=folder / "data")) as (_, address):
        run("index", str(folder / "documents.ndjson"), "--url", address)
        code, out, _ = run("search", "--batch", str(folder / "requests.ndjson"), "--url", address)
    assert code == 1
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["line"], line["status"]) for line in lines] == [
        (1, 200), (3, 422), (4, 200), (5, 422), (6, 422), (7, 200),
    ]  # fmt: skip
    assert lines[4]["problem"]["detail"] == "the line has more than the 1048576 bytes allowed"
