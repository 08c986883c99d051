"""``trivium index`` refuses what ``POST /v1/documents`` refuses: the same lines through both, and the same outcome."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from typer.testing import CliRunner

from adapters import SENSITIVITIES, Scope
from fusion.columns import Documents
from orchestrator.bootstrap import open_service
from orchestrator.cli.main import main
from orchestrator.http.app import create_app
from orchestrator.indexing.ndjson import MAX_DOCUMENT_BYTES
from orchestrator.settings import Settings, load


@dataclass(frozen=True)
class Outcome:
    """The number of indexed lines, the error of each rejected line, and all documents afterwards: id to text."""

    indexed: int
    errors: dict[int, str]
    documents: dict[str, str]


@pytest.fixture(autouse=True)
def _model(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_MODEL_DIR", str(model_dir))


def by_command(folder: Path, lines: bytes) -> tuple[int, dict[int, str]]:
    """The clearance of the command line is always the highest: who may change the folder may write every document."""
    result = CliRunner().invoke(
        main, ["index", "-", "--json"], input=lines, catch_exceptions=False, env={"TRIVIUM_DATA_DIR": str(folder)}
    )
    outcome = json.loads(result.stdout)
    errors = {each["line"]: each["error"] for each in outcome["errors"]}
    assert outcome["rejected"] == len(errors)
    assert result.exit_code == (1 if errors else 0)
    return outcome["indexed"], errors


def by_api(folder: Path, lines: bytes) -> tuple[int, dict[int, str]]:
    app = create_app(load(data_dir=folder))

    async def post() -> Any:
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            response = await client.post("/v1/documents", content=lines)
            assert response.status_code == 200, response.text
            return response.json()

    outcome = anyio.run(post)
    errors = {each["line"]: each["error"] for each in outcome["lines"] if each["status"] == "rejected"}
    assert outcome["rejected"] == len(errors)
    return outcome["indexed"], errors


def documents(folder: Path) -> dict[str, str]:
    async def read(settings: Settings) -> dict[str, str]:
        async with open_service(settings) as service:
            records = await service.documents.documents.sample(1_000)
            return {record.document.id: record.document.text for record in records}

    return anyio.run(read, load(data_dir=folder))


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bytes], Outcome]:
    """Send lines through both edges, each with an index of its own; the outcome, which is the same."""

    def send(clearance: str, lines: bytes) -> Outcome:
        monkeypatch.setenv("TRIVIUM_OPEN_CLEARANCE", clearance)
        outcomes = []
        for name, edge in (("command", by_command), ("api", by_api)):
            indexed, errors = edge(tmp_path / name, lines)
            outcomes.append(Outcome(indexed, errors, documents(tmp_path / name)))
        command, api = outcomes
        assert command == api
        return command

    return send


def ndjson(*documents: dict[str, object]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in documents)


ONE_OF_EACH = ndjson(*({"id": name, "text": "old", "sensitivity": name} for name in SENSITIVITIES))


@pytest.mark.parametrize("clearance", SENSITIVITIES)
def test_a_caller_of_the_api_writes_and_replaces_up_to_its_clearance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clearance: str
) -> None:
    assert by_command(tmp_path, ONE_OF_EACH) == (len(SENSITIVITIES), {})
    monkeypatch.setenv("TRIVIUM_OPEN_CLEARANCE", clearance)
    visible = SENSITIVITIES[: SENSITIVITIES.index(clearance) + 1]  # type: ignore[arg-type]
    lines = ndjson(*({"id": name, "text": "new", "sensitivity": "public"} for name in SENSITIVITIES))
    indexed, errors = by_api(tmp_path, lines)
    assert indexed == len(visible)
    assert errors == {
        number: f"id: {name!r} is taken by a document that you may not see"
        for number, name in enumerate(SENSITIVITIES, start=1)
        if name not in visible
    }
    assert documents(tmp_path) == {name: "new" if name in visible else "old" for name in SENSITIVITIES}
    indexed, errors = by_api(tmp_path, ONE_OF_EACH.replace(b'"id": "', b'"id": "other-'))
    assert indexed == len(visible)
    assert all("is above your clearance, allowed are public" in error for error in errors.values())


def test_the_command_line_replaces_what_the_api_may_not_see(tmp_path: Path) -> None:
    by_command(tmp_path, ndjson({"id": "a", "text": "old", "sensitivity": "restricted"}))
    assert by_command(tmp_path, ndjson({"id": "a", "text": "new"})) == (1, {})
    assert documents(tmp_path) == {"a": "new"}


INVALID = [
    b"{oops",
    b"[]",
    b"null",
    b'"text"',
    b'{"id":"a"}',
    b'{"text":"x"}',
    b'{"id":"","text":"x"}',
    b'{"id":1,"text":"x"}',
    b'{"id":"a","text":" "}',
    b'{"id":"a","text":"x","colour":"red"}',
    b'{"id":"a","text":"x","importance":11}',
    b'{"id":"a","text":"x","importance":NaN}',
    b'{"id":"a","text":"x","sensitivity":"top"}',
    b'{"id":"a","text":"x","chunk_index":-1}',
    b'{"id":"a","text":"x","created_at":"2026-01-01T00:00:00"}',
    b'{"id":"a","text":"x","metadata":{"a":{"b":1}}}',
    b'{"id":"a","text":"x","links":[{"target":"b","type":"t","weight":0}]}',
    b'{"id":"a","text":"\xff"}',
    b'{"id":"a","text":"x"}{"id":"b","text":"x"}',
]
"""Fewer than the errors that the command prints at most."""


def test_every_invalid_line_is_refused_and_the_valid_ones_are_indexed(both: Callable[[str, bytes], Outcome]) -> None:
    valid = [b'{"id":"first","text":"x"}', b"", *INVALID, b"   ", b'{"id":"last","text":"y"}']
    outcome = both("normal", b"\n".join(valid))
    assert outcome.indexed == 2
    assert list(outcome.errors) == list(range(3, 3 + len(INVALID)))
    assert outcome.documents == {"first": "x", "last": "y"}


def document_of(size: int) -> bytes:
    """A line of so many bytes."""
    line = ndjson({"id": f"{size}", "text": ""}).rstrip()
    return line.replace(b'"text": ""', b'"text": "' + b"x" * (size - len(line)) + b'"')


def test_a_document_that_is_too_large_is_refused(both: Callable[[str, bytes], Outcome]) -> None:
    limit = MAX_DOCUMENT_BYTES
    outcome = both("normal", b"\n".join([document_of(limit), document_of(limit + 1), b'{"id":"b","text":"y"}']))
    assert outcome.errors == {2: f"the line has {limit + 1} bytes, allowed are {limit}"}
    assert set(outcome.documents) == {str(limit), "b"}


def test_an_id_that_is_too_long_is_refused(both: Callable[[str, bytes], Outcome]) -> None:
    """512 bytes, which are fewer characters if they are not ASCII."""
    outcome = both(
        "normal", ndjson(*({"id": id_, "text": "x"} for id_ in ("a" * 512, "a" * 513, "é" * 256, "é" * 257)))
    )
    assert set(outcome.errors) == {2, 4}
    assert outcome.errors[4] == "id: 514 bytes, allowed are 512"
    assert set(outcome.documents) == {"a" * 512, "é" * 256}


@pytest.mark.parametrize(
    ("field", "limit"), [("tags", 10_000), ("entities", 10_000), ("links", 10_000), ("metadata", 256)]
)
def test_too_many_items_are_refused(both: Callable[[str, bytes], Outcome], field: str, limit: int) -> None:
    def items(count: int) -> object:
        if field == "metadata":
            return {str(n): n for n in range(count)}
        return [{"target": str(n), "type": "t"} if field == "links" else str(n) for n in range(count)]

    lines = ndjson({"id": "a", "text": "x", field: items(10)}, {"id": "b", "text": "x", field: items(limit + 1)})
    outcome = both("normal", lines)
    assert outcome.errors == {2: f"{field}: {limit + 1}, allowed are {limit}"}


@pytest.mark.parametrize("lines", [b"", b"\n \n"])
def test_an_input_without_documents_is_refused(tmp_path: Path, lines: bytes) -> None:
    """Most likely the wrong file was sent, or the command before a pipe failed."""
    command = CliRunner().invoke(main, ["index", "-"], input=lines, env={"TRIVIUM_DATA_DIR": str(tmp_path / "command")})
    app = create_app(load(data_dir=tmp_path / "api"))

    async def post() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            return await client.post("/v1/documents", content=lines)

    response = anyio.run(post)
    assert (command.exit_code, response.status_code) == (2, 422)
    assert response.json()["detail"] in " ".join(command.stderr.split())


def test_documents_of_other_tenants_are_out_of_reach(
    both: Callable[[str, bytes], Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both("restricted", ONE_OF_EACH)
    monkeypatch.setenv("TRIVIUM_TENANT", "other")
    assert both("normal", ndjson({"id": "restricted", "text": "of another tenant"})).indexed == 1

    async def text_of(folder: Path, tenant: str) -> str:
        async with open_service(load(data_dir=folder)) as service:
            records = await service.documents.documents.fetch(Scope(tenant), Documents.of_ids(["restricted"]))
            return records["restricted"].document.text

    read: Callable[[Path, str], Awaitable[str]] = text_of
    for name in ("command", "api"):
        assert anyio.run(read, tmp_path / name, "default") == "old"
        assert anyio.run(read, tmp_path / name, "other") == "of another tenant"
