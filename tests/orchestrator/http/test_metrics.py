"""``GET /metrics`` of a running service, and the probes and the metric that the manifests of Kubernetes name."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from orchestrator.http.app import create_app
from orchestrator.settings import Settings
from tests.orchestrator.served import Serve, environment
from tests.orchestrator.telemetry.test_metrics import values
from tests.orchestrator.telemetry.test_tracing import CLIENT_TRACE, Collector

pytestmark = pytest.mark.anyio

REQUESTS = "trivium_request_duration_seconds_count"
SEARCHED = f"{REQUESTS}{{method=POST}}{{path=/v1/search}}{{status=200}}"


def scrape(address: str, accept: str = "text/plain") -> str:
    request = urllib.request.Request(f"{address}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as response:
        return str(response.read().decode())


def search(address: str, query: str, headers: dict[str, str] | None = None, timeout_ms: int = 10_000) -> int:
    body = json.dumps({"query": query, "timeout_ms": timeout_ms}).encode()
    request = urllib.request.Request(f"{address}/v1/search", body, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


async def test_a_search_that_no_source_answered_counts_as_failed(chosen: Settings) -> None:
    """Also the alert of an open circuit is about these."""
    app = create_app(chosen.changed(graph="bolt://127.0.0.1:1"))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            before = values((await client.get("/metrics")).text)
            for number in range(3):
                body = {"query": f"x {number}", "mode": "graph"}
                assert (await client.post("/v1/search", json=body)).status_code == 503
            lines = "\n".join(json.dumps({"query": f"y {number}", "mode": "graph"}) for number in range(2))
            assert (await client.post("/v1/search/batch", content=lines)).text.count("every source failed") == 2
            found = values((await client.get("/metrics")).text)
    name = "trivium_source_searches_total{outcome=failed}{source=graph}"
    assert found[name] - before.get(name, 0) == 5


async def test_what_was_answered_is_counted_and_nothing_of_it_is_named(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/search", json={"query": "secret words", "timeout_ms": 10_000})).status_code == 200
    assert (await client.post("/v1/search", json={"query": 1})).status_code == 422
    assert (await client.get("/no/such/path")).status_code == 404
    response = await client.get("/metrics")
    found = values(response.text)
    assert found[SEARCHED] == 1
    assert found[f"{REQUESTS}{{method=POST}}{{path=/v1/search}}{{status=422}}"] == 1
    assert found[f"{REQUESTS}{{method=unknown}}{{path=unknown}}{{status=404}}"] == 1
    assert found["trivium_searches_total{cache=miss}"] == 1
    assert found["trivium_requests_in_flight"] == 1  # the one that reads them
    assert "secret" not in response.text
    assert "default" not in response.text  # the tenant


def test_two_processes_are_one_service_and_a_new_one_takes_the_place_of_one_that_ended(
    serve: Serve, tmp_path: Path
) -> None:
    with serve(environment(data_dir=tmp_path), "--workers", "2") as (process, address):
        for number in range(20):  # a connection for each: the two processes take them in turn
            assert search(address, f"query {number}") == 200
        found = values(scrape(address))
        assert found[SEARCHED] == 20
        assert found["trivium_memory_bytes"] > 100 << 20
        workers = [
            child for child in psutil.Process(process.pid).children() if "spawn_main" in " ".join(child.cmdline())
        ]
        assert len(workers) == 2
        workers[0].send_signal(signal.SIGKILL)
        workers[0].wait(10)
        eventually(lambda: _alive(process.pid) == 2)
        assert search(address, "one more") == 200
        eventually(lambda: values(scrape(address))[SEARCHED] >= 21)


def test_the_report_of_the_caches_is_that_of_all_processes(serve: Serve, tmp_path: Path) -> None:
    with serve(environment(data_dir=tmp_path), "--workers", "2") as (_, address):
        for number in range(10):  # a connection for each: the two processes take them in turn
            assert search(address, f"query {number}") == search(address, f"query {number}") == 200

        def report() -> dict[str, Any]:
            with urllib.request.urlopen(f"{address}/v1/cache", timeout=10) as response:
                found: dict[str, Any] = json.loads(response.read())
            return found

        def counts_all() -> bool:  # the other process reports once a second
            level = report()["levels"]["l1"]
            return bool(level["hits"] + level["misses"] >= 20)

        eventually(counts_all)
        first, second = report(), report()
        assert first == second
        level = first["levels"]["l1"]
        assert level["hits"] + level["misses"] == 20
        assert level["entries"] == level["stored"] >= 10
        assert level["hit_rate"] == level["hits"] / 20
        assert (first["flights"], first["joined"]) == (0, 0)


def _alive(pid: int) -> int:
    children = psutil.Process(pid).children()
    return sum("spawn_main" in " ".join(each.cmdline()) for each in children if each.is_running())


def test_the_requests_in_flight_rise_under_load_in_two_processes_and_the_probes_answer(
    serve: Serve, tmp_path: Path
) -> None:
    env = environment(data_dir=tmp_path, search_concurrency=1, client_timeout_ms=30_000)
    with serve(env, "--workers", "2") as (_, address), ThreadPoolExecutor(8) as pool:
        stopping = threading.Event()

        def load(client: int) -> None:
            number = 0
            while not stopping.is_set():
                search(address, f"{client} {'word ' * 100} {number}")
                number += 1

        idle = values(scrape(address))["trivium_requests_in_flight"]
        clients = [pool.submit(load, client) for client in range(8)]
        try:
            eventually(lambda: values(scrape(address))["trivium_requests_in_flight"] >= idle + 3)
            for probe in ("/livez", "/readyz"):
                urllib.request.urlopen(address + probe, timeout=5).close()  # raises unless it succeeds
        finally:
            stopping.set()
        for client in clients:
            client.result()
        eventually(lambda: values(scrape(address))["trivium_requests_in_flight"] <= idle)


def test_readiness_fails_first_when_the_process_is_to_end(serve: Serve, tmp_path: Path) -> None:
    env = environment(data_dir=tmp_path) | {"TRIVIUM_SHUTDOWN_GRACE_MS": "10000"}
    with serve(env) as (process, address):
        os.kill(process.pid, signal.SIGTERM)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{address}/readyz", timeout=5)
        with refused.value as error:
            assert error.code == 503
        assert search(address, "still answered") == 200


def test_a_traced_search_is_an_exemplar_and_a_span_with_its_stages(serve: Serve, tmp_path: Path) -> None:
    with Collector() as collector:
        env = environment(data_dir=tmp_path) | {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
        header = {"traceparent": f"00-{CLIENT_TRACE}-b7ad6b7169203331-01"}  # recorded, because the client's is
        with serve(env) as (_, address):
            assert search(address, "traced", header) == 200
            assert f'trace_id="{CLIENT_TRACE}"' in scrape(address, "application/openmetrics-text; version=1.0.0")
        spans = {span.name for span in collector.spans if span.trace_id.hex() == CLIENT_TRACE}
    assert spans >= {"POST /v1/search", "plan", "gather", "vector", "keyword", "fuse", "hydrate"}
