"""The files of the console as the service sends them; what a browser makes of them is tested in ``console/``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

import orchestrator.http
from adapters.model.filter import Filter
from fusion.strategy import STRATEGIES
from fusion.values import CollapseMode
from orchestrator.http.app import create_app
from orchestrator.schema.search import AUTO, HYBRID, ProfileName
from orchestrator.settings import Settings
from tests.orchestrator.http.helpers import problem

CONSOLE = Path(orchestrator.http.__file__).parent / "console"
MAX_BYTES = 120_000


def listed(name: str) -> tuple[str, ...]:
    """The texts in a list of ``state.js``."""
    found = re.search(rf"export const {name} = \[(.*?)\];", (CONSOLE / "state.js").read_text("utf-8"), re.DOTALL)
    assert found
    return tuple(re.findall(r'"([^"]*)"', found[1]))


def test_the_form_offers_what_the_api_allows() -> None:
    assert listed("STRATEGIES") == tuple(str(strategy()) for strategy in STRATEGIES.values())
    assert listed("MODES") == (AUTO, HYBRID)
    assert set(listed("PROFILES")) == set(ProfileName.__args__)  # type: ignore[attr-defined]
    assert set(listed("COLLAPSES")) == set(CollapseMode.__args__)  # type: ignore[attr-defined]
    conditions = set(re.findall(r'op: "(\w+)"', (CONSOLE / "request.js").read_text("utf-8")))
    assert conditions <= {each.__struct_config__.tag for each in Filter.__args__}  # type: ignore[attr-defined]


def test_what_is_of_others_is_unchanged() -> None:
    """The checksums are those of the packages of npm; see NOTICE."""
    vendor = CONSOLE / "vendor"
    lines = (vendor / "checksums.txt").read_text("utf-8").splitlines()
    sums = {path: checksum for checksum, path, _ in (line.split("  ") for line in lines)}
    found = {str(path.relative_to(vendor)): path for path in vendor.rglob("*") if path.is_file()}
    assert sums == {
        name: sha256(path.read_bytes()).hexdigest() for name, path in found.items() if name != "checksums.txt"
    }


def requested(name: str) -> Iterator[str]:
    """The files that a file makes a browser request."""
    text = (CONSOLE / name).read_text("utf-8")
    if name.endswith(".html"):
        yield from (each.removeprefix("console/") for each in re.findall(r'(?:src|href)="(console/[^"]+)"', text))
    elif name.endswith(".js"):
        for path in re.findall(r'from ?"(\.[^"]+)"', text):
            yield str((CONSOLE / name).parent.joinpath(path).resolve().relative_to(CONSOLE.resolve()))


def test_the_page_is_light_and_has_no_file_that_it_does_not_use() -> None:
    used, found = {"index.html"}, ["index.html"]
    while found:
        new = set(requested(found.pop())) - used
        used |= new
        found += new
    files = {str(path.relative_to(CONSOLE)) for path in CONSOLE.rglob("*") if path.is_file()}
    assert files - used == {"vendor/checksums.txt", "vendor/d3/LICENSE", "vendor/lit-html/LICENSE"}
    assert sum((CONSOLE / name).stat().st_size for name in used) < MAX_BYTES


@pytest.mark.anyio
async def test_the_page_and_its_files(client: httpx.AsyncClient) -> None:
    page = await client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    for name, kind in (("main.js", "text/javascript"), ("console.css", "text/css"), ("icon.svg", "image/svg+xml")):
        response = await client.get(f"/console/{name}")
        assert response.headers["content-type"].partition(";")[0] == kind
        assert response.headers["x-content-type-options"] == "nosniff"
        again = await client.get(f"/console/{name}", headers={"If-None-Match": response.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    assert (await client.head("/")).status_code == 200
    problem(await client.post("/"), 405)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path", ["console/none.js", "console/../console_files.py", "console/%2e%2e/app.py", "console/"]
)
async def test_no_other_file_is_sent(client: httpx.AsyncClient, path: str) -> None:
    problem(await client.get(f"/{path}"), 404)


@pytest.mark.anyio
async def test_it_can_be_switched_off(chosen: Settings) -> None:
    app: FastAPI = create_app(chosen.changed(console=False))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for path in ("/", "/console/main.js"):
                body = problem(await client.get(path), 404)
                assert body["detail"] == "the console is switched off by TRIVIUM_CONSOLE"


@pytest.mark.anyio
async def test_the_state_of_the_service(client: httpx.AsyncClient) -> None:
    body = (await client.get("/v1/status")).json()
    assert body["sources"] == {"vector": "ok", "graph": "ok", "keyword": "ok"}
    assert (body["generation"], body["documents"], body["mismatches"]) == (0, 0, {})
    assert body["accepts_writes"] is True
    assert body["disk_free_bytes"] > 0
