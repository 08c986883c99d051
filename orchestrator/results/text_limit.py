"""The maximum length of the texts in a response: many hits with long neighbours would fill memory and the network."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from orchestrator.schema.search import SearchHit

MAX_TEXT_CHARS = 8_388_608
"""Of all hits together. A document has at most a megabyte."""


def limit_text(hits: Sequence[SearchHit], max_chars: int = MAX_TEXT_CHARS) -> tuple[tuple[SearchHit, ...], str]:
    """The hits, best first, with as much text as is allowed; and what was cut, or nothing."""
    remaining = max_chars
    limited, cut = [], 0
    for hit in hits:
        if len(hit.text) > remaining:
            start, end = hit.span
            span = (min(start, remaining), min(end, remaining))
            hit, cut = replace(hit, text=hit.text[:remaining], span=span), cut + 1  # noqa: PLW2901
        remaining -= len(hit.text)
        limited.append(hit)
    if not cut:
        return tuple(hits), ""
    return tuple(limited), f"the texts of {cut} hits are cut: {max_chars} characters are allowed in a response"
