"""The ports of a graph besides its rankings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from adapters.model.document import Scope
from adapters.model.filter import Filter
from adapters.model.protection import HIGHEST_CLEARANCE, Sensitivity
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


MAX_EXAMPLES = 4


class MentionedName(NamedTuple):
    """A name that a document mentions.

    :param name: in normal form.
    :param documents: number of documents that mention it.
    :param examples: :data:`MAX_EXAMPLES` of these, or fewer, the same ones until a write.
    """

    name: str
    documents: int
    examples: Sequence[DocId]


class Neighborhood(NamedTuple):
    """What is one step away from a document in the graph, as far as the caller may see it.

    :param linked: documents that it links to or that link to it, the first by id.
    :param linked_count: number of all of these.
    :param names: of those that it mentions, the ones in the fewest documents, these first. Names in very many documents
        are left out.
    :param name_count: number of all of these.
    """

    linked: Sequence[DocId] = ()
    linked_count: int = 0
    names: Sequence[MentionedName] = ()
    name_count: int = 0

    @classmethod
    def of(
        cls, linked: Sequence[DocId], linked_count: int, names: Iterable[MentionedName], name_count: int
    ) -> Neighborhood:
        """The neighborhood with names in any order."""
        return cls(linked, linked_count, sorted(names, key=lambda each: (each.documents, each.name)), name_count)


class NeighborhoodReader(Protocol):
    """What is around a document."""

    async def neighborhood(self, scope: Scope, id_: DocId, access: Filter, limit: int) -> Neighborhood:
        """The neighborhood of a document that the caller may see; empty if it is not in the graph.

        :param access: what the caller may see, in normal form.
        :param limit: maximum number of linked documents, and of names.
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
