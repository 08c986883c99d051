"""Traces by OpenTelemetry: one span for a request, one in it for each stage.

Off unless a standard variable names an endpoint for traces (``OTEL_EXPORTER_OTLP_ENDPOINT``,
``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT``); the SDK reads these and the other ``OTEL_`` variables itself. One trace in 20
is recorded unless ``OTEL_TRACES_SAMPLER`` is set: recording all of them would use too much processor time. The spans of
the stages are created after the response was sent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from time import perf_counter, time_ns
from typing import TYPE_CHECKING

from adapters.servers.trace_context import HEADER, traceparent
from orchestrator.telemetry.spans import StageTimings

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_SAMPLER = "OTEL_TRACES_SAMPLER"
_SAMPLED_FRACTION = 0.05
_STATE = "tracestate"


class TracingNotInstalled(Exception):
    """An endpoint for traces is set, but OpenTelemetry is not installed: pip install 'trivium[tracing]'."""

    def __init__(self) -> None:
        super().__init__(str(self.__doc__))


class Tracing:
    """Creates the spans of a service. :meth:`close` sends the last ones.

    :raises TracingNotInstalled: if OpenTelemetry is not installed.
    """

    def __init__(self, release: str) -> None:
        ensure_installed()
        from opentelemetry import trace  # noqa: PLC0415  # an extra
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio  # noqa: PLC0415
        from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415

        name = os.environ.get("OTEL_SERVICE_NAME", "trivium")
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": name, "service.version": release}),
            sampler=None if os.environ.get(_SAMPLER) else ParentBasedTraceIdRatio(_SAMPLED_FRACTION),
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("trivium", release)
        self._propagator = tracecontext.TraceContextTextMapPropagator()
        self._server = trace.SpanKind.SERVER
        self._in_span = trace.set_span_in_context

    def start(self, method: str, headers: Mapping[bytes, bytes]) -> RequestSpan:
        """Start the span of a request, whose trace may have begun at the client. Later calls to servers name it."""
        carrier = {name: value.decode("latin-1") for name in (HEADER, _STATE) if (value := headers.get(name.encode()))}
        parent = self._propagator.extract(carrier) if carrier else None
        span = self._tracer.start_span(method, parent, kind=self._server)
        outgoing: dict[str, str] = {}
        self._propagator.inject(outgoing, self._in_span(span))
        traceparent.set(outgoing.get(HEADER, ""))
        return RequestSpan(self, span)

    def end(self, span: Span, attributes: Mapping[str, str | int], timings: StageTimings | None) -> None:
        """End the span of a request, with a span for each stage in it."""
        if span.is_recording():
            span.set_attributes(dict(attributes))
            if timings:
                to_epoch_ns = time_ns() - int(perf_counter() * 1e9)
                context = self._in_span(span)
                for stage, ms in timings.stages_ms.items():
                    start_ns = int(timings.starts_s[stage] * 1e9) + to_epoch_ns
                    child = self._tracer.start_span(stage, context, start_time=start_ns)
                    child.end(start_ns + int(ms * 1e6))
        span.end()

    def close(self) -> None:
        """Send the last spans. Blocks."""
        self._provider.shutdown()


class RequestSpan:
    """The span of one request."""

    __slots__ = ("_span", "_tracing")

    def __init__(self, tracing: Tracing, span: Span) -> None:
        self._tracing = tracing
        self._span = span

    @property
    def trace_id(self) -> str:
        """The id of the trace, if it is recorded; else empty."""
        context = self._span.get_span_context()
        return f"{context.trace_id:032x}" if context.trace_flags.sampled else ""

    def end(self, name: str, attributes: Mapping[str, str | int], timings: StageTimings | None) -> None:
        """End the span.

        :param name: of the operation.
        """
        self._span.update_name(name)
        self._tracing.end(self._span, attributes, timings)


def is_enabled() -> bool:
    """Whether an endpoint for traces is set."""
    return any(os.environ.get(name) for name in _ENDPOINTS)


def ensure_installed() -> None:
    """Check the installation before anything starts.

    :raises TracingNotInstalled: if an endpoint is set, and OpenTelemetry is not installed.
    """
    if is_enabled() and not (find_spec("opentelemetry") and find_spec("opentelemetry.sdk")):
        raise TracingNotInstalled
