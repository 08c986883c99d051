"""What became of the hits of a response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from adapters.model.document import Scope
from adapters.model.protection import Viewer

FeedbackKind: TypeAlias = Literal["used", "useful", "not_useful"]
Hit: TypeAlias = tuple[str, str, str]
"""Collection and id of a hit, and the id of the document that it belongs to: of its parent, or its own."""


@dataclass(frozen=True, slots=True)
class ShownResponse:
    """The hits of one response.

    :param viewer: the caller: of those who do not see as much, it is not known whether they may see the hits.
    :param at: in seconds since the epoch.
    :param query: its text; ``None`` if texts are not kept.
    :param first: position of the first hit among those of all pages, from 1.
    :param profiles: that each hit is of, if the hits are those of two in turn; ``None`` for one that does not count.
    """

    query_id: str
    scope: Scope
    viewer: Viewer
    at: float
    query_hash: str
    query: str | None
    first: int
    hits: tuple[Hit, ...]
    profiles: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Feedback:
    """What became of a hit.

    :param hit: its number in the response, from 0.
    :param position: where it was shown, from 1.
    """

    query_id: str
    hit: int
    kind: FeedbackKind
    position: int
    at: float
