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


class WalkedDocument(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A document that a walk reaches: its mass; if it passes the filter its id, and its rank fields as JSON."""

    key: str
    mass: _Fraction
    id: str | None
    fields: str | None


class QueryCounts(msgspec.Struct, frozen=True):
    """See ``query_counts.cypher``. ``documents`` and ``words`` are those of the scope."""

    documents: _Number
    words: _Number
    link_types: list[str]
    link_forward: list[_Strength]
    link_backward: list[_Strength]
    frequencies: list[tuple[str, _Number]]
    degrees: list[tuple[str, _Number]]


class WalkSeeds(msgspec.Struct, frozen=True):
    """See ``walk_seeds.cypher``."""

    mentions: list[tuple[str, _Number]]
    ring: list[WalkedDocument]


class WalkStep(msgspec.Struct, frozen=True):
    """See ``walk_step.cypher``."""

    ring: list[WalkedDocument]
    passing: list[WalkedDocument]


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
