"""The maximum length of the texts in a response: many hits with long neighbours would fill memory and the network."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from adapters.model.document import values_of
from orchestrator.results.hit_fields import with_text
from orchestrator.schema.hits import SearchHit

MAX_TEXT_CHARS = 8_388_608
"""Maximum length of titles, texts and metadata of all hits together. A document has at most a megabyte."""
_NUMBER_CHARS = 20
"""Maximum length of a number or a truth value in JSON."""


def limit_text(hits: Sequence[SearchHit], max_chars: int = MAX_TEXT_CHARS) -> tuple[tuple[SearchHit, ...], str]:
    """The hits, best first, with as much text as is allowed, and a report if text was cut."""
    remaining = max_chars
    limited, cut = [], 0
    for hit in hits:
        size = _size(hit)
        if size > remaining:
            hit, cut = _cut(hit, remaining, size), cut + 1  # noqa: PLW2901
            size = _size(hit)
        remaining -= size
        limited.append(hit)
    if not cut:
        return tuple(hits), ""
    return tuple(limited), f"the texts of {cut} hits are cut: {max_chars} characters are allowed in a response"


def _size(hit: SearchHit) -> int:
    """The characters of a hit, without ids and numbers."""
    size = len(hit.title) + len(hit.text) + sum(map(len, hit.heading_path)) + len(hit.section or "")
    for key, value in hit.metadata.items():
        size += len(key)
        for each in values_of(value):
            size += len(each) if isinstance(each, str) else _NUMBER_CHARS
    return size


def _cut(hit: SearchHit, max_chars: int, size: int) -> SearchHit:
    """A hit with at most ``max_chars`` characters: text is cut first, then metadata left out, then the title cut."""
    if (others := size - len(hit.text)) > max_chars:
        hit = replace(hit, title=hit.title[:max_chars], metadata={}, heading_path=(), section=None)
        others = len(hit.title)
    return with_text(hit, max_chars - others)
