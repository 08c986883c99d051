"""Every error has a status and is a problem as in RFC 9457."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import httpx
import msgspec
import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect

from adapters import AdapterError, BadResponse, Rejected, TimedOut, Unavailable, VersionMismatch
from orchestrator.auth.keyring import UnknownKey
from orchestrator.auth.principal import Forbidden
from orchestrator.execution.stage_results import AllSourcesFailed, Failed
from orchestrator.http.errors import STATUSES, HttpError, error_response, problem
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.problem import Problem
from orchestrator.service.errors import NotFound, Overloaded, ServiceError
from tests.orchestrator.http.helpers import problem as checked_problem
from tests.orchestrator.http.helpers import search

pytestmark = pytest.mark.anyio

BOTH_FAILED = AllSourcesFailed((Failed("vector", "timed out", 1.0), Failed("keyword", "refused", 1.0)))
DECODE_ERROR = "the body is "

STATUS_BY_ERROR: list[tuple[Exception, int, str]] = [
    (HttpError(413, "the body has 9 bytes, allowed are 8"), 413, "the body has 9 bytes, allowed are 8"),
    (UnknownKey(), 401, "send an API key of this service as `Authorization: Bearer <key>`"),
    (Forbidden("the key 'a' may not"), 403, "the key 'a' may not"),
    (NotFound("no document 'a'"), 404, "no document 'a'"),
    (Overloaded(over_quota=True), 429, "your tenant has more requests waiting than its share: try again in a moment"),
    (
        Overloaded(over_quota=False),
        503,
        "more requests are waiting than can be processed in time: try again in a moment",
    ),
    (BadRequest("limit: 0, allowed are 1 to 50"), 422, "limit: 0, allowed are 1 to 50"),
    (msgspec.ValidationError("Expected `int` - at `$.limit`"), 422, "limit: Expected `int`"),
    (msgspec.DecodeError("JSON is malformed"), 422, f"{DECODE_ERROR}not JSON: JSON is malformed"),
    (
        UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "invalid start byte"),
        422,
        f"{DECODE_ERROR}not UTF-8: unexpected byte 0xff",
    ),
    (RecursionError(), 422, f"{DECODE_ERROR}not JSON of this schema: it is nested too deeply"),
    (BOTH_FAILED, 503, "every source failed"),
    (AdapterError("something"), 503, "something"),
    (Unavailable("disk on fire"), 503, "disk on fire"),
    (TimedOut("too late"), 503, "too late"),
    (Rejected("refused"), 503, "refused"),
    (BadResponse("not understood"), 503, "not understood"),
    (VersionMismatch("built by another encoder"), 503, "built by another encoder"),
    (ZeroDivisionError("password=hunter2"), 500, "internal error; see the log for this request id"),
]


@pytest.mark.parametrize(("error", "status", "detail"), STATUS_BY_ERROR, ids=lambda each: type(each).__name__)
async def test_every_error_has_a_status_and_a_text(error: Exception, status: int, detail: str) -> None:
    response = error_response(error, "id-1")
    body = msgspec.json.decode(response.body, type=Problem)
    assert (response.status_code, response.media_type) == (status, "application/problem+json")
    assert (body.title, body.status, body.detail, body.request_id) == (STATUSES[status], status, detail, "id-1")
    assert response.headers.get("retry-after") == ("1" if status in {429, 503} else None)
    assert response.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)


async def test_each_source_that_failed_is_an_error_of_its_own() -> None:
    body = json.loads(error_response(BOTH_FAILED, "id-1").body)
    assert body["errors"] == ["vector: timed out", "keyword: refused"]


async def test_a_client_that_disconnected_gets_no_body() -> None:
    response = error_response(ClientDisconnect(), "id-1")
    assert (response.status_code, response.body) == (499, b"")


def _with_subclasses(kind: type[Exception]) -> Iterator[type[Exception]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _with_subclasses(subclass)


@pytest.mark.parametrize("base", [ServiceError, AdapterError])
async def test_no_error_that_the_service_raises_on_purpose_is_a_500(base: type[Exception]) -> None:
    """A new error without a status fails here."""
    own = [kind for kind in _with_subclasses(base) if kind.__module__.startswith(("orchestrator.", "adapters."))]
    assert len(own) >= 2
    for kind in own:
        error = kind.__new__(kind)
        error.over_quota = False  # type: ignore[attr-defined]  # of Overloaded
        assert error_response(error, "id-1").status_code != 500, kind


async def test_only_a_defect_is_logged_with_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    for error, status, _ in STATUS_BY_ERROR:
        caplog.clear()
        with caplog.at_level(logging.ERROR, "orchestrator.http.errors"):
            error_response(error, "id-1")
        traces = [record for record in caplog.records if record.name == "orchestrator.http.errors"]
        assert len(traces) == (status == 500), error
        assert all("id-1" in record.getMessage() for record in traces)


@given(st.sampled_from(sorted(STATUSES)), st.text(), st.lists(st.text()), st.text(alphabet="abc-", min_size=1))
async def test_a_problem_has_the_fields_of_rfc_9457_whatever_its_texts(
    status: int, detail: str, errors: list[str], id_: str
) -> None:
    body = json.loads(problem(status, detail, id_, tuple(errors)).body)
    assert (body["title"], body["status"], body["detail"]) == (STATUSES[status], status, detail)
    assert body.get("type", "about:blank") == "about:blank"  # section 4.2.1: the default, and then title is the status'
    assert (body["request_id"], body.get("errors", [])) == (id_, errors)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "not JSON"),
        (b"{", "empty or incomplete"),
        (b"\xff", "not JSON from byte 1 on"),
        (b'{"query":"x","filter":' + b'{"op":"not","filter":' * 40_000, "nested too deeply"),
        (b"[]", "[], allowed are objects"),
        (b"{}", "query: missing, it is required"),
        (b'{"query":"x","colour":1}', "unknown field 'colour', allowed are query"),
        (b'{"query":1}', "query: 1, allowed are texts"),
        (b'{"query":""}', "query: '', allowed are texts of 1 to 4096 characters"),
        (b'{"query":"   "}', "only white space"),
        (b'{"query":"' + b"x" * 102_400 + b'"}', "102400 characters, allowed are 1 to 4096"),
        (b'{"query":"x","limit":0}', "limit: 0, allowed are 1 to 50"),
        (b'{"query":"x","limit":1000000000}', "limit: 1000000000, allowed are 1 to 50"),
        (b'{"query":"x","limit":1.5}', "limit: 1.5, allowed are whole numbers"),
        (
            b'{"query":"x","mode":"psychic"}',
            "mode: 'psychic', allowed are auto, hybrid, vector, graph, keyword",
        ),
        (b'{"query":"x","vector":[NaN]}', "not JSON from byte 24 on"),
        (b'{"query":"x","vector":[1e999]}', "out of range"),
        (b'{"query":"x","vector":["a"]}', "vector[0]: 'a', allowed are numbers"),
        (b'{"query":"x","vector":[]}', "0 numbers, the documents have 384"),
        (b'{"query":"x","vector":[1,2]}', "2 numbers, the documents have 384"),
        (b'{"query":"\\ud800"}', "not JSON"),
        (b'{"query":"x","weights":{"sonar":1}}', "allowed are vector, graph, keyword"),
        (b'{"query":"x","weights":{"graph":-1}}', "weights.graph: -1, allowed are 0 to 1000"),
        (b'{"query":"x","fusion":"best"}', "unknown fusion strategy"),
        (b'{"query":"x","filter":{"op":"eq","field":"tenant","value":"t"}}', "unknown field 'tenant'"),
        (b'{"query":"x","filter":{"op":"like"}}', "allowed are eq, in, range, exists, and, or, not"),
        (b'{"query":"x","timeout_ms":0}', "timeout_ms: 0, allowed are 1 to 60000"),
        (b'{"query":"x","collections":[]}', "collections: [], allowed are lists of 1 to 20 values"),
    ],
)
async def test_invalid_input_gets_an_error_that_names_what_is_wrong_and_what_is_allowed(
    client: httpx.AsyncClient, body: bytes, detail: str
) -> None:
    error = checked_problem(await client.post("/v1/search", content=body), 422)
    assert detail in error["detail"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BOTH_FAILED, 503),
        (Unavailable("disk on fire"), 503),
        (AdapterError("something"), 503),
        (ZeroDivisionError("password=hunter2"), 500),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_errors_of_a_search_become_problems(
    client: httpx.AsyncClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    async def fails(*_: object) -> object:
        raise error

    monkeypatch.setattr(app.state.service.search.retrieval, "retrieve", fails)
    response = await search(client, query="x")
    body = checked_problem(response, status)
    assert body["request_id"] == response.headers["x-request-id"]
    assert "hunter2" not in response.text
    assert (response.headers.get("retry-after") == "1") == (status == 503)
    if isinstance(error, AllSourcesFailed):
        assert body["errors"] == ["vector: timed out", "keyword: refused"]


@pytest.mark.parametrize(
    ("error", "status"), [(Unavailable("disk on fire"), 503), (ZeroDivisionError("password=hunter2"), 500)]
)
async def test_errors_of_other_paths_become_problems_too(
    client: httpx.AsyncClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    """FastAPI's own handler of errors would respond with a bare 500."""

    def fails() -> object:
        raise error

    monkeypatch.setattr(app.state.service.health.embedded, "documents", fails)
    response = await client.get("/readyz")
    body = checked_problem(response, status)
    assert body["request_id"] == response.headers["x-request-id"]
    assert "hunter2" not in response.text


@settings(max_examples=150)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=4),
                st.dictionaries(st.sampled_from(["query", "limit", "filter", "op", "field", "vector", "x"]), inner),
            ),
        ).map(lambda value: json.dumps(value).encode()),
    )
)
async def test_no_body_gets_a_bare_500(client: httpx.AsyncClient, body: bytes) -> None:
    for path in ("/v1/search", "/v1/documents"):
        assert (await client.post(path, content=body)).status_code in {200, 422}
