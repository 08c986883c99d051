"""The trace that a call to a server belongs to, as servers read it (W3C Trace Context, section 3.2)."""

from __future__ import annotations

from contextvars import ContextVar

HEADER = "traceparent"

traceparent: ContextVar[str] = ContextVar(HEADER, default="")
"""The value of the header while a request is traced; empty otherwise."""


def trace_headers() -> dict[str, str]:
    """The header, if the current request is traced."""
    value = traceparent.get()
    return {HEADER: value} if value else {}
