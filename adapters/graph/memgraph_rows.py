"""The rows that a graph server returns, by statement. Invalid rows are rejected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias, TypeVar

import msgspec

from adapters.graph.bolt import Row
from adapters.servers.server import unreadable

T = TypeVar("T")
_Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Strength: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
_Fraction: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1 + 1e-9)]
"""None of these may be NaN. A fraction may be a little more than 1, because a server rounds its sums."""


class Ring(msgspec.Struct, frozen=True):
    """Documents that a walk reaches, as columns: lists in lists take the driver longer to read.

    ``ids`` and ``fields`` (rank fields as JSON) are empty for a document that does not pass the filter.
    """

    keys: list[str]
    masses: list[_Fraction]
    ids: list[str]
    fields: list[str]

    def __post_init__(self) -> None:
        """:raises ValueError: if the columns have different lengths, or a document is there twice."""
        if {len(self.masses), len(self.ids), len(self.fields), len(set(self.keys))} != {len(self.keys)}:
            raise ValueError("a ring whose columns do not match")


class WalkSeeds(msgspec.Struct, frozen=True):
    """See ``walk_seeds.cypher``. ``frequencies`` has for each word the number of documents that contain it, and of
    those that have it with a capital only; ``mentions`` for each name the number of documents that mention it, and of
    those whose authors list it. ``documents`` and ``words`` are the numbers of those of the scope."""

    documents: _Number
    words: _Number
    link_types: list[str]
    link_forward: list[_Strength]
    link_backward: list[_Strength]
    frequencies: list[tuple[str, _Number, _Number]]
    mentions: list[tuple[str, _Number, _Number]]
    ring: Ring


class WalkStep(msgspec.Struct, frozen=True):
    """See ``walk_step.cypher``. ``returned`` is a part of the mass that the step started from."""

    ring: Ring
    passing: Ring
    returned: _Fraction = 0.0


class Build(msgspec.Struct, frozen=True):
    """The build of an index."""

    build_id: str


class MeasuredDocument(msgspec.Struct, frozen=True):
    """A document with its centrality."""

    id: str
    centrality: _Strength


class DocumentCount(msgspec.Struct, frozen=True):
    """See ``count_documents.cypher``."""

    documents: _Number


class NeighborhoodRow(msgspec.Struct, frozen=True):
    """See ``neighborhood.cypher``."""

    linked: list[str]
    linked_count: _Number
    names: list[tuple[str, _Number, list[str]]]
    name_count: _Number


class ServerTime(msgspec.Struct, frozen=True):
    """The time of the server since the epoch, in its own unit."""

    now: Annotated[float, msgspec.Meta(ge=0, le=1e18)]


def converted(rows: Row | Sequence[Row], type_: type[T], request: str) -> T:
    """The rows of a response, or one of them.

    :raises BadResponse: if they are not of the type.
    """
    try:
        return msgspec.convert(rows, type_)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise unreadable(f"the graph server's response to {request}", error) from error
