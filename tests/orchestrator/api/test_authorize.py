"""Who may do what over HTTP, with keys and without."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from adapters import Scope
from orchestrator import keys
from orchestrator.api.app import create
from orchestrator.api.routes import OPERATIONS
from orchestrator.settings import Settings
from tests.secrets import keep_out

pytestmark = pytest.mark.anyio


class Keyed:
    """A service with keys, and who has them."""

    def __init__(self, path: Path, client: httpx.AsyncClient, service: Any) -> None:
        self.path, self._client, self.service = path, client, service
        self._keys = {
            "root": keys.add(path, "root", Scope("acme", "live"), "restricted", admin=True),
            "reader": keys.add(path, "reader", Scope("acme", "live"), "normal", admin=False),
            "other": keys.add(path, "other", Scope("umbrella", "live"), "restricted", admin=True),
        }
        for key in self._keys.values():
            keep_out(key)
            keep_out(key.split("_", 2)[2])

    async def __call__(self, who: str, method: str, path: str, **sent: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self._keys[who]}"} if who in self._keys else {}
        return await self._client.request(method, path, headers=headers, **sent)

    async def found(self, who: str) -> set[str]:
        answer = await self(who, "POST", "/v1/search", json={"query": "alpha", "timeout_ms": 10_000})
        return {hit["id"] for hit in answer.json()["hits"]}


@pytest.fixture
async def ask(chosen: Settings, tmp_path: Path) -> AsyncIterator[Keyed]:
    path = tmp_path / "keys"
    path.touch()
    app = create(chosen.model_copy(update={"keys_file": path, "follow_ms": 10}))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            made = Keyed(path, client, app.state.service)
            app.state.service.keys.refresh()
            yield made


DOCUMENT = b'{"id":"a","text":"alpha"}\n{"id":"s","text":"alpha","sensitivity":"restricted"}'


async def test_each_key_reaches_its_own_scope_up_to_its_clearance(ask: Keyed) -> None:
    assert (await ask("root", "POST", "/v1/documents", content=DOCUMENT)).json()["indexed"] == 2
    assert (await ask("other", "POST", "/v1/documents", content=b'{"id":"o","text":"alpha"}')).json()["indexed"] == 1
    assert [await ask.found(who) for who in ("root", "reader", "other")] == [{"a", "s"}, {"a"}, {"o"}]
    assert (await ask("reader", "GET", "/v1/documents/s")).status_code == 404
    assert (await ask("other", "GET", "/v1/documents/a")).status_code == 404
    counts = [(await ask(who, "GET", "/v1/collections")).json()["collections"] for who in ("root", "reader", "other")]
    assert [each[0]["documents"] for each in counts] == [2, 1, 1]
    assert (await ask("other", "DELETE", "/v1/documents/a")).json()["deleted"] is False
    assert (await ask("root", "DELETE", "/v1/documents/s")).json()["deleted"] is True


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
async def test_every_path_needs_what_the_table_says(ask: Keyed, operation: Any) -> None:
    path = operation.path.replace("{id}", "a")
    statuses = {who: (await ask(who, operation.method, path, content=b"")).status_code for who in ("nobody", "reader")}
    refused = {"nothing": (False, False), "key": (True, False), "admin": (True, True)}[operation.needs]
    assert (statuses["nobody"] == 401, statuses["reader"] == 403) == refused
    assert operation.needs == "nothing" or operation.path.startswith("/v1/")


async def test_a_refusal_says_how_to_do_it_right_and_nothing_of_keys(ask: Keyed) -> None:
    nobody = await ask("nobody", "GET", "/v1/collections")
    assert nobody.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer" in nobody.json()["detail"]
    reader = await ask("reader", "GET", "/v1/cache")
    assert reader.json()["title"] == "not allowed"


async def test_keys_change_without_a_restart(ask: Keyed) -> None:
    assert (await ask("reader", "GET", "/v1/collections")).status_code == 200
    keys.remove(ask.path, "reader")
    with anyio.fail_after(10):
        while (await ask("reader", "GET", "/v1/collections")).status_code == 200:  # noqa: ASYNC110
            await anyio.sleep(0.01)
    assert (await ask("reader", "GET", "/v1/collections")).status_code == 401
    assert (await ask("root", "GET", "/v1/collections")).status_code == 200


async def test_readiness_tells_strangers_no_reasons(ask: Keyed, monkeypatch: pytest.MonkeyPatch) -> None:
    library = ask.service.local.library
    monkeypatch.setattr(library, "documents_by_part", lambda: {"vector": 0, "graph": 7, "keyword": 0})
    ready = (await ask("nobody", "GET", "/readyz")).json()
    assert ready["sources"] == {"vector": "ok", "graph": "not well", "keyword": "ok"}
    assert (await ask("nobody", "GET", "/openapi.json")).json()["paths"]["/v1/search"]["post"]["security"]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:8080", 200),
        ("LOCALHOST.", 200),
        ("app.localhost:80", 200),
        ("127.0.0.1:8080", 200),
        ("127.8.9.1", 200),
        ("[::1]:8080", 200),
        ("evil.example", 403),
        ("evil.example:8080", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("evillocalhost", 403),
        ("10.0.0.1", 403),
        ("0.0.0.0", 403),
    ],
)
async def test_without_keys_only_names_of_this_machine_reach_it(
    client: httpx.AsyncClient, host: str, status: int
) -> None:
    """A page that turns its own name to 127.0.0.1 sends that name, as the origin too."""
    for headers in ({"Host": host}, {"Host": host, "Origin": f"http://{host}"}):
        assert (await client.get("/v1/collections", headers=headers)).status_code == status
        assert (
            await client.post("/v1/documents", headers=headers, content=b'{"id":"a","text":"b"}')
        ).status_code == status


async def test_without_keys_pages_from_elsewhere_are_refused(client: httpx.AsyncClient) -> None:
    for origin, status in (("https://evil.example", 403), ("http://localhost", 200), ("null", 403), ("http://[", 403)):
        answer = await client.get("/v1/collections", headers={"Origin": origin})
        assert answer.status_code == status, origin
        assert not [name for name in answer.headers if name.startswith("access-control")]
