"""The part of each hit that a request asks for: fields, and characters of the text."""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from orchestrator.planning.plan import PagePlan
from orchestrator.schema.hits import ALWAYS_RETURNED, HIT_FIELDS, SearchHit
from orchestrator.schema.search import ResponseBody


def selected(body: ResponseBody, page: PagePlan) -> ResponseBody:
    """The response with the fields of hits that the request asks for; the others are ``UNSET``."""
    if page.fields is None:
        return body
    left_out = dict.fromkeys(set(HIT_FIELDS).difference(page.fields, ALWAYS_RETURNED), UNSET)
    return replace(body, hits=tuple(replace(hit, **left_out) for hit in body.hits))


def with_text(hit: SearchHit, chars: int) -> SearchHit:
    """The hit with the first characters of its text."""
    start, end = hit.span
    return replace(hit, text=hit.text[:chars], span=(min(start, chars), min(end, chars)))
