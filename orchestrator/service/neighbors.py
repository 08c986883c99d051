"""What is around a document in the graph: linked documents, names, and other documents that mention these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from adapters import Document, Link
from adapters.ports.graph import Neighborhood, NeighborhoodReader
from fusion.doc_ids import id_and_collection
from fusion.values import DocId
from orchestrator.auth.principal import Principal
from orchestrator.auth.visibility import access_filter, visibility_check
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.documents import (
    NeighborDocument,
    NeighborLink,
    NeighborMention,
    NeighborName,
    NeighborsResponse,
)
from orchestrator.service.documents import DocumentService

DEFAULT_NEIGHBORS, MAX_NEIGHBORS = 40, 200
"""Documents and names of a neighborhood together."""


@dataclass(frozen=True, slots=True)
class NeighborService:
    """Reads neighborhoods.

    :param graph: ``None`` if there is none: then nothing is around a document.
    """

    documents: DocumentService
    graph: NeighborhoodReader | None

    async def of(
        self, id_: str, principal: Principal, collection: str | None = None, limit: int = DEFAULT_NEIGHBORS
    ) -> NeighborsResponse:
        """The neighborhood of a document. Errors are those of :meth:`DocumentService.get`.

        Half of the limit is for linked documents, those that the document links to first; a quarter for names, the
        rarest first; a quarter for further documents that mention them. What one does not need the others get.

        :param limit: documents and names together, the document itself included: 2 to :data:`MAX_NEIGHBORS`.
        :raises BadRequest: if the limit is not allowed.
        :raises AdapterError: if the documents or the graph cannot be read.
        """
        if not 2 <= limit <= MAX_NEIGHBORS:
            raise BadRequest(f"limit: {limit}, allowed are 2 to {MAX_NEIGHBORS}")
        lookup, scope = self.documents.lookup, principal.scope
        access = access_filter(scope, principal.viewer)
        async with self.documents.read_slot(principal):
            record = await lookup.existing(id_, principal, collection)
            own = record.key[2]
            found = await self.graph.neighborhood(scope, own, access, limit) if self.graph else Neighborhood()
            linked = _own_targets_first(record.document, found.linked)
            examples = [each for name in found.names for each in name.examples if each not in {own, *linked}]
            links, mentioned, others = _shares(limit - 1, (len(linked), len(found.names), len(set(examples))))
            names = found.names[:mentioned]
            ids = dict.fromkeys((own, *linked[:links], *(each for name in names for each in name.examples)))
            records = await lookup.by_identity(list(ids)[: 1 + links + others], scope)
        check = visibility_check(access)
        visible = [each for id_ in ids if (each := records.get(id_)) and check(each)]
        numbers = {each.key[2]: number for number, each in enumerate(visible)}
        documents = [each.document for each in visible]
        return NeighborsResponse(
            tuple(NeighborDocument(each.id, each.collection, each.title, each.sensitivity) for each in documents),
            tuple(NeighborName(each.name, each.documents) for each in names),
            tuple(_links(documents)),
            tuple(
                NeighborMention(numbers[mentioning], number)
                for number, name in enumerate(names)
                for mentioning in dict.fromkeys((own, *name.examples))
                if mentioning in numbers
            ),
            found.linked_count - links + found.name_count - mentioned,
        )


def _own_targets_first(document: Document, linked: Sequence[DocId]) -> list[DocId]:
    targets = {each.target for each in document.links}
    return sorted(linked, key=lambda each: (id_and_collection(each)[0] not in targets, each))


def _shares(places: int, wanted: tuple[int, int, int]) -> list[int]:
    """How many of some places three kinds get: a half, a quarter and a quarter, and what others leave."""
    shares = [min(count, places // part) for count, part in zip(wanted, (2, 4, 4), strict=True)]
    for kind, count in enumerate(wanted):
        shares[kind] += min(count - shares[kind], places - sum(shares))
    return shares


def _links(documents: Sequence[Document]) -> Iterator[NeighborLink]:
    """The links from and to the first document, each type once."""
    first, *others = documents
    from_first: dict[str, list[Link]] = defaultdict(list)
    for link in first.links:
        from_first[link.target].append(link)
    for number, other in enumerate(others, start=1):
        for type_ in _types(from_first[other.id], other):
            yield NeighborLink(0, number, type_)
        for type_ in _types(other.links, first):
            yield NeighborLink(number, 0, type_)


def _types(links: Iterable[Link], target: Document) -> dict[str, None]:
    """The types of the links that lead to a document, in order."""
    return dict.fromkeys(
        link.type for link in links if link.target == target.id and link.target_collection in (None, target.collection)
    )
