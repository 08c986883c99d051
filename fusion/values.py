"""Values that callers read and send. Without numpy, so that a program that only needs these starts fast."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

DocId: TypeAlias = str
"""See :func:`fusion.doc_ids.doc_id`."""

CollapseMode: TypeAlias = Literal["none", "parent", "window", "url"]
"""One hit for each document, for each parent, for each window of neighbouring chunks, or for each url."""


class DocumentFields(Struct, frozen=True, array_like=True):
    """The fields of one document that ranking needs.

    ``parent`` is the id of the document that this one is a chunk of; ``chunk`` is its index there, from 0;
    ``created_at`` is in seconds since the epoch; ``importance`` is from 0 to 10.
    """

    parent: DocId | None = None
    chunk: int | None = None
    created_at: float | None = None
    importance: float | None = None


class Contribution(Struct, frozen=True, gc=False):
    """The contribution of one source to one hit. ``rank`` starts at 1; ``contribution`` is in units of the raw sum."""

    rank: int
    score: float
    weight: float
    contribution: float
