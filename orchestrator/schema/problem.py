"""Errors on the wire: RFC 9457."""

from __future__ import annotations

from msgspec import Struct


class Problem(Struct, frozen=True, omit_defaults=True):
    """A problem as in RFC 9457, section 3. ``errors`` has one text for each of several errors."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"
    request_id: str | None = None
    errors: tuple[str, ...] = ()
