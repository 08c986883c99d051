"""Traces, as a collector receives them. The collector is a stand-in: it decodes what the exporter sends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from adapters.servers.trace_context import trace_headers, traceparent
from orchestrator.telemetry import tracing
from orchestrator.telemetry.spans import StageTimings
from orchestrator.telemetry.tracing import Tracing, TracingNotInstalled

CLIENT_TRACE, CLIENT_SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector:
    """Receives traces over HTTP."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resource: dict[str, str] = {}

        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                for each in ExportTraceServiceRequest.FromString(body).resource_spans:
                    collector.resource = {item.key: item.value.string_value for item in each.resource.attributes}
                    collector.spans += [span for scope in each.scope_spans for span in scope.spans]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self.server.serve_forever)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Collector:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.endpoint)
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_on")
        token = traceparent.set("")  # requests have contexts of their own; these tests have one
        yield running
        traceparent.reset(token)


def test_a_request_is_a_span_in_the_clients_trace_with_a_span_for_each_stage(collector: Collector) -> None:
    service = Tracing("1.2.3")
    timings = StageTimings()
    headers = {b"traceparent": f"00-{CLIENT_TRACE}-{CLIENT_SPAN}-01".encode(), b"tracestate": b"vendor=a"}
    request = service.start("POST", headers)
    with timings.stage("gather"), timings.stage("vector"):
        pass
    timings.record("plan", 1.5)
    request.end("POST /v1/search", {"http.response.status_code": 200}, timings)
    service.close()
    by_name = {span.name: span for span in collector.spans}
    assert set(by_name) == {"POST /v1/search", "gather", "vector", "plan"}
    root = by_name["POST /v1/search"]
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (CLIENT_TRACE, CLIENT_SPAN)
    assert root.kind == Span.SPAN_KIND_SERVER
    assert root.attributes[0].value.int_value == 200
    assert all(by_name[stage].parent_span_id == root.span_id for stage in ("gather", "vector", "plan"))
    gather, vector, plan = (by_name[stage] for stage in ("gather", "vector", "plan"))
    assert gather.start_time_unix_nano <= vector.start_time_unix_nano
    assert vector.end_time_unix_nano <= gather.end_time_unix_nano
    assert plan.end_time_unix_nano - plan.start_time_unix_nano == 1_500_000
    assert root.start_time_unix_nano - 2_000_000 < gather.start_time_unix_nano < root.end_time_unix_nano
    assert collector.resource["service.name"] == "trivium"
    assert collector.resource["service.version"] == "1.2.3"


def test_calls_to_servers_name_the_trace_and_the_span_of_the_request(collector: Collector) -> None:
    assert trace_headers() == {}
    service = Tracing("1")
    request = service.start("POST", {})
    sent = trace_headers()["traceparent"].split("-")
    request.end("POST /v1/search", {}, None)
    service.close()
    (span,) = collector.spans
    assert sent[:3] == ["00", span.trace_id.hex(), span.span_id.hex()]
    assert int(sent[3], 16) & 1  # recorded
    assert request.trace_id == span.trace_id.hex()


def test_a_trace_that_is_not_recorded_is_not_sent_and_has_no_id_for_exemplars(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
    service = Tracing("1")
    request = service.start("POST", {})
    request.end("POST /v1/search", {}, StageTimings())
    service.close()
    assert not request.trace_id
    assert collector.spans == []


def test_one_trace_in_twenty_is_recorded_by_default(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_TRACES_SAMPLER")
    service = Tracing("1")
    requests = [service.start("GET", {}) for _ in range(2_000)]
    recorded = sum(bool(request.trace_id) for request in requests)
    service.close()
    assert 40 < recorded < 180  # 100 are expected, with a standard deviation of 10


def test_it_is_off_unless_a_variable_names_where_traces_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert not tracing.is_enabled()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:4318/v1/traces")
    assert tracing.is_enabled()


def test_where_opentelemetry_is_missing_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    tracing.ensure_installed()
    monkeypatch.setattr(tracing, "find_spec", lambda _: None)
    with pytest.raises(TracingNotInstalled, match=r"pip install 'trivium\[tracing\]'"):
        tracing.ensure_installed()
