"""Feedback: what became of the hits of a response."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from adapters.model.feedback import FeedbackKind
from orchestrator.schema.search import Name

MAX_POSITION = 10_000


class FeedbackRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``POST /v1/feedback``. Unknown fields are refused."""

    query_id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$", description="of the response that had the hit")]
    id: Annotated[Name, Meta(description="of the hit")]
    collection: Annotated[
        Name | None, Meta(description="of the hit; required if hits of several collections have the id")
    ] = None
    kind: Annotated[
        FeedbackKind,
        Meta(description="used: opened, clicked or cited; useful and not_useful: what a user says about it"),
    ]
    position: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_POSITION)] | None,
        Meta(description="where it was shown, from 1; by default its position in the response"),
    ] = None


class FeedbackResponse(Struct, frozen=True, kw_only=True):
    """The feedback as it is stored."""

    query_id: str
    id: str
    collection: str
    kind: FeedbackKind
    position: int


class DeletedFeedback(Struct, frozen=True):
    """The response to ``DELETE /v1/feedback``: how many responses were recorded, and how much feedback to them."""

    responses: int
    feedback: int
