"""The ports of a graph besides its rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

from adapters.model.document import HIGHEST_CLEARANCE, Scope, Sensitivity
from fusion.values import DocId

if TYPE_CHECKING:
    from adapters.ports.retriever import SourceQuery
    from adapters.ports.snapshot import Snapshot

Centrality: TypeAlias = Literal["pagerank", "degree", "betweenness", "harmonic", "none"]
"""A centrality measure by the name that networkx gives it."""


class EntityLookup(Protocol):
    """Recognises entities in queries."""

    async def mentions_entity(self, query: SourceQuery) -> bool:
        """Whether the query contains the name of an entity that the principal may see.

        :raises AdapterError: and nothing else.
        """
        ...


class CentralityReader(Protocol):
    """Precomputed centralities."""

    async def centralities(
        self,
        scope: Scope,
        ids: Sequence[DocId],
        snapshot: Snapshot | None = None,
        clearance: Sensitivity = HIGHEST_CLEARANCE,
    ) -> Mapping[DocId, float]:
        """Centrality in [0, 1] by id among what may be seen of the scope; documents without one are left out.

        :param snapshot: the state of the index to read; ``None`` is the newest one.
        :raises AdapterError: and nothing else.
        """
        ...


class LinkStrength(Struct, frozen=True):
    """How far a walk follows the links of a type, from 0 (not at all) to 1.

    :param forward: from the document that has the link to its target.
    :param backward: from the target.
    :param reason: in words.
    """

    type: str
    forward: float
    backward: float
    reason: str


class LinkStrengthReader(Protocol):
    """The strengths of link types."""

    async def link_strengths(self, scope: Scope) -> Sequence[LinkStrength]:
        """The link types of a scope.

        :raises AdapterError: and nothing else.
        """
        ...


class GraphMaintenance(Protocol):
    """The maintenance of a graph server: figures of all documents, which it computes and stores."""

    async def update_strengths(self) -> None:
        """Update the strengths of all documents and link types; a write does so for the documents in its own
        neighbourhood only.

        :raises AdapterError: and nothing else.
        """
        ...

    async def compute_centralities(self, measure: Centrality) -> None:
        """Compute a measure for the documents of all scopes. May take minutes.

        :raises AdapterError: and nothing else.
        """
        ...
