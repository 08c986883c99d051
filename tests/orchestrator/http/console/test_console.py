"""The console in a real browser: each test runs a file of Node's own test runner against real services."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from adapters import Scope
from orchestrator.auth.key_admin import add_key
from tests.orchestrator.http.console import tools
from tests.orchestrator.http.console.hostile import STRINGS
from tests.orchestrator.http.helpers import ndjson
from tests.orchestrator.served import Serve, environment
from tests.secrets import register_secret
from tests.servers.start import free_port

pytestmark = [pytest.mark.server, pytest.mark.process]

FILMS: list[dict[str, Any]] = [
    {"id": "nolan", "title": "Christopher Nolan", "text": "A film director, born in London.", "tags": ["person"]},
    {
        "id": "prestige", "title": "The Prestige", "text": "A film by Christopher Nolan about two rival magicians.",
        "tags": ["film"], "metadata": {"year": 2006}, "url": "https://example.org/prestige", "created_at": "2006-10-20",
        "links": [{"target": "nolan", "type": "directed_by"}], "entities": ["Christopher Nolan", "The Prestige"],
    },
    {
        "id": "inception", "title": "Inception", "text": "A heist inside of dreams, a film by Christopher Nolan.",
        "tags": ["film"], "metadata": {"year": 2010}, "links": [{"target": "nolan", "type": "directed_by"}],
    },
    {
        "id": "interstellar", "title": "Interstellar", "text": "A film about a journey through a wormhole.",
        "tags": ["film"], "metadata": {"year": 2014}, "links": [{"target": "nolan", "type": "directed_by"}],
    },
    {"id": "heat", "title": "Heat", "text": "A detective and a thief, and one last heist. A film by Michael Mann.",
     "tags": ["film"], "metadata": {"year": 1995}},
    {"id": "sleep", "title": "Why we sleep", "text": "We dream at night, and nightmares are dreams too."},
    {"id": "bank", "title": "Bank robberies", "text": "Heist, heist, heist: a list of the largest thefts from banks."},
    {"id": "pasta", "title": "Pasta", "text": "Boil water, add salt."},
]  # fmt: skip


@pytest.fixture(scope="module")
def run(program: Callable[[str, str], str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Runs the tests of a file."""
    chromium = program("chromium", "the package chromium of Debian")
    folder = tmp_path_factory.mktemp("console")
    tools.install(program("npm", "the package npm of Debian"), folder)

    def run_file(name: str, **variables: str) -> None:
        command = ["--test", "--test-reporter=spec", str(tools.HERE / name)]
        ended = tools.run(command, chromium, folder, python=sys.executable, **variables)
        assert ended.returncode == 0, ended.stdout + ended.stderr

    return run_file


@pytest.fixture
def indexed(tmp_path: Path, model_dir: Path, python: str) -> Callable[[str, Sequence[object]], dict[str, str]]:
    """Indexes documents: the environment of a service on them."""

    def index(name: str, documents: Sequence[object]) -> dict[str, str]:
        limits = {"source_timeout_ms": 5_000, "request_timeout_ms": 5_000}
        env = environment(data_dir=tmp_path / name, model_dir=model_dir, **limits)
        file = tmp_path / f"{name}.ndjson"
        file.write_bytes(ndjson(*documents))
        subprocess.run([python, "-m", "orchestrator", "index", str(file)], env=env, check=True, capture_output=True)
        return env

    return index


Indexed = Callable[[str, Sequence[object]], dict[str, str]]


def in_films(documents: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**each, "collection": "films"} for each in documents]


def test_a_service_without_keys(run: Callable[..., None], serve: Serve, indexed: Indexed) -> None:
    with serve(indexed("films", in_films(FILMS))) as (_, address):
        run("open.mjs", address=address)


def test_a_service_with_keys(run: Callable[..., None], serve: Serve, indexed: Indexed, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.touch()
    scope = Scope("default", "default")
    operator = add_key(keys, "operator", scope, "normal", operator=True)
    reader = add_key(keys, "reader", scope, "normal", admin=False)
    for key in (operator, reader):
        register_secret(key)
    with serve({**indexed("films", in_films(FILMS)), "TRIVIUM_KEYS_FILE": str(keys)}) as (_, address):
        run("keyed.mjs", address=address, key=operator, reader=reader)


def without_controls(text: str) -> str:
    """A text as documents keep it."""
    return "".join(each for each in text if each in "\n\t" or unicodedata.category(each) != "Cc")


@pytest.fixture
def hostile_documents() -> list[dict[str, Any]]:
    """A document for each string, which is in every field that may have it, and a link from the one before it."""
    identities = [
        {"id": each, "collection": each} if is_name(each) else {"id": f"h{number}", "collection": "hostile"}
        for number, each in enumerate(STRINGS)
    ]
    return [
        {
            **identities[number],
            "title": each,
            "text": f"needle {each} needle",
            **({"tags": [each], "entities": [each], "section": each, "url": each} if is_name(each) else {}),
            "metadata": {each[:200]: each} if is_name(each) else {},
            "links": [{**link_to(identities[number - 1]), "type": each if is_name(each) else "plain"}],
        }
        for number, each in enumerate(STRINGS)
    ]  # fmt: skip


def link_to(identity: dict[str, str]) -> dict[str, str]:
    return {"target": identity["id"], "target_collection": identity["collection"]}


def is_name(text: str) -> bool:
    """Whether it may be an id, a name or a tag: those have no control characters and no white space around them."""
    return text.isprintable() and text == text.strip()


def test_other_services(
    run: Callable[..., None], serve: Serve, indexed: Indexed, hostile_documents: list[dict[str, Any]], tmp_path: Path,
    model_dir: Path,
) -> None:  # fmt: skip
    assert len(STRINGS) == 40
    films = indexed("films", in_films(FILMS))
    without_keyword = {**films, "TRIVIUM_KEYWORD": f"opensearch+http://127.0.0.1:{free_port()}"}
    hostile = indexed("hostile", hostile_documents)
    empty = environment(data_dir=tmp_path / "empty", model_dir=model_dir)
    with (
        serve(without_keyword) as (_, degraded),
        serve(empty, until="/livez") as (_, nothing),
        serve(hostile) as (_, attacked),
    ):
        run(
            "other.mjs",
            degraded=degraded,
            empty=nothing,
            hostile=attacked,
            strings=json.dumps([without_controls(each) for each in STRINGS]),
            identities=json.dumps([[each["id"], each["collection"]] for each in hostile_documents]),
        )


def test_a_console_that_is_switched_off(serve: Serve, tmp_path: Path, model_dir: Path) -> None:
    import httpx

    with serve(environment(data_dir=tmp_path, model_dir=model_dir, console="false")) as (_, address):
        for path in ("/", "/console/main.js"):
            response = httpx.get(f"{address}{path}")
            assert response.status_code == 404
            assert "TRIVIUM_CONSOLE" in response.json()["detail"]
