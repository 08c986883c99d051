"""Authentication over HTTP, with keys and without."""

from __future__ import annotations

from typing import Any

import anyio
import httpx
import pytest

from orchestrator.auth.key_admin import remove_key
from orchestrator.http.routes import OPERATIONS, Operation
from tests.orchestrator.http.helpers import KeyedClient

pytestmark = pytest.mark.anyio


DOCUMENTS = b'{"id":"a","text":"alpha"}\n{"id":"s","text":"alpha","sensitivity":"restricted"}'


async def test_each_key_reaches_its_own_scope_up_to_its_clearance(keyed: KeyedClient) -> None:
    request = keyed.request
    assert (await request("root", "POST", "/v1/documents", content=DOCUMENTS)).json()["indexed"] == 2
    assert (await request("other", "POST", "/v1/documents", content=b'{"id":"o","text":"alpha"}')).json()[
        "indexed"
    ] == 1
    assert [await keyed.found(name) for name in ("root", "reader", "other")] == [{"a", "s"}, {"a"}, {"o"}]
    assert (await request("reader", "GET", "/v1/documents/s")).status_code == 404
    assert (await request("other", "GET", "/v1/documents/a")).status_code == 404
    names = ("root", "reader", "other")
    counts = [(await request(name, "GET", "/v1/collections")).json()["collections"] for name in names]
    assert [each[0]["documents"] for each in counts] == [2, 1, 1]
    assert (await request("other", "DELETE", "/v1/documents/a")).json()["deleted"] is False
    assert (await request("root", "DELETE", "/v1/documents/s")).json()["deleted"] is True


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
async def test_every_operation_needs_the_role_in_the_table(keyed: KeyedClient, operation: Operation) -> None:
    path = operation.path.replace("{id}", "a")
    without_key = (await keyed.request(None, operation.method, path, content=b"")).status_code
    as_reader = (await keyed.request("reader", operation.method, path, content=b"")).status_code
    refused = {"none": (False, False), "reader": (True, False), "admin": (True, True), "operator": (True, True)}[
        operation.role
    ]
    assert (without_key == 401, as_reader == 403) == refused
    assert operation.role == "none" or operation.path.startswith(("/v1/", "/metrics", "/mcp"))


async def test_an_administrator_of_a_tenant_does_not_see_what_the_process_counts_of_all(keyed: KeyedClient) -> None:
    for path in ("/v1/cache", "/metrics"):
        assert (await keyed.request("root", "GET", path)).status_code == 403
        assert (await keyed.request("monitoring", "GET", path)).status_code == 200


async def test_a_refusal_names_the_remedy_and_reveals_no_key(keyed: KeyedClient) -> None:
    without_key = await keyed.request(None, "GET", "/v1/collections")
    assert without_key.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer" in without_key.json()["detail"]
    as_reader = await keyed.request("reader", "GET", "/v1/cache")
    assert as_reader.json()["title"] == "Forbidden"
    assert "trivium_" not in without_key.text + as_reader.text


async def test_keys_change_without_a_restart(keyed: KeyedClient) -> None:
    assert (await keyed.request("reader", "GET", "/v1/collections")).status_code == 200
    remove_key(keyed.path, "reader")
    with anyio.fail_after(10):
        while (await keyed.request("reader", "GET", "/v1/collections")).status_code == 200:  # noqa: ASYNC110
            await anyio.sleep(0.01)
    assert (await keyed.request("reader", "GET", "/v1/collections")).status_code == 401
    assert (await keyed.request("root", "GET", "/v1/collections")).status_code == 200


async def test_readiness_gives_no_reasons_if_there_are_keys(
    keyed: KeyedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = keyed.service.health.embedded
    monkeypatch.setattr(embedded, "documents_by_source", lambda: {"vector": 0, "graph": 7, "keyword": 0})
    ready = (await keyed.request(None, "GET", "/readyz")).json()
    assert ready["sources"] == {"vector": "ok", "graph": "not ok", "keyword": "ok"}
    document = (await keyed.request(None, "GET", "/openapi.json")).json()
    assert document["paths"]["/v1/search"]["post"]["security"]


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
async def test_without_keys_only_names_of_this_machine_are_accepted(
    client: httpx.AsyncClient, host: str, status: int
) -> None:
    """A page whose name was made to resolve to 127.0.0.1 sends that name, as the origin too."""
    for headers in ({"Host": host}, {"Host": host, "Origin": f"http://{host}"}):
        assert (await client.get("/v1/collections", headers=headers)).status_code == status
        assert (
            await client.post("/v1/documents", headers=headers, content=b'{"id":"a","text":"b"}')
        ).status_code == status


async def test_without_keys_pages_of_other_origins_are_refused(client: httpx.AsyncClient) -> None:
    for origin, status in (("https://evil.example", 403), ("http://localhost", 200), ("null", 403), ("http://[", 403)):
        response = await client.get("/v1/collections", headers={"Origin": origin})
        assert response.status_code == status, origin
        assert not [name for name in response.headers if name.startswith("access-control")]


@pytest.mark.parametrize("name", ["Host", "Authorization", "X-Request-Id", "Content-Type", "Origin"])
async def test_a_header_that_has_one_value_must_not_be_repeated(client: httpx.AsyncClient, name: str) -> None:
    """A proxy may have checked the first value."""
    for other in ("localhost", "10.0.0.1"):
        for path in ("/v1/collections", "/livez"):
            response = await client.get(path, headers=[(name, "localhost"), (name.lower(), other)])
            assert response.status_code == 400, path
            assert f"the header '{name.lower()}' is repeated" in response.json()["detail"]
    assert (await client.get("/livez", headers=[("Accept", "text/html"), ("Accept", "*/*")])).status_code == 200


@pytest.mark.parametrize("name", ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP"])
async def test_without_keys_requests_through_a_proxy_are_refused(client: httpx.AsyncClient, name: str) -> None:
    """A proxy on this machine that sends its own host would make an operator of everyone."""
    response = await client.get("/v1/collections", headers={"Host": "localhost", name: "203.0.113.7"})
    assert response.status_code == 403
    assert f"has '{name.lower()}': add keys" in response.json()["detail"]
    assert (await client.get("/livez", headers={name: "203.0.113.7"})).status_code == 200


async def test_with_keys_requests_may_come_through_a_proxy(keyed: KeyedClient) -> None:
    response = await keyed.request("reader", "GET", "/v1/collections", headers={"X-Forwarded-For": "203.0.113.7"})
    assert response.status_code == 200


async def test_the_log_line_of_a_refused_request_has_its_key(
    keyed: KeyedClient, log_lines: list[dict[str, Any]]
) -> None:
    assert (await keyed.request("reader", "POST", "/v1/documents", content=DOCUMENTS)).status_code == 403
    (line,) = [each for each in log_lines if each["status"] == 403]
    assert (line["key"], line["tenant"]) == ("reader", "acme")
