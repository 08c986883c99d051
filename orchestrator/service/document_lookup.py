"""Documents by id and by parent, as far as a principal may see them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import anyio.to_thread

from adapters import Document, Record, Scope, Unavailable
from adapters.model.batching import batches
from adapters.model.filter import And, Eq, Filter, In, conjunction, normal
from adapters.ports import DocumentReader
from fusion.columns import Documents
from fusion.doc_ids import DEFAULT_COLLECTION, doc_id
from fusion.values import DocId
from orchestrator.auth.principal import Principal
from orchestrator.auth.visibility import access_filter, visibility_check
from orchestrator.planning.errors import BadRequest
from orchestrator.service.errors import Ambiguous, NotFound

_MAX_SEARCHED_COLLECTIONS = 64
"""Collections in which an id is looked up; with more, a request has to name one."""
_MAX_CHUNKS = 10_000
"""Chunks of one document, or of those that are looked up together."""
_BATCH_PARENTS = 256


@dataclass(frozen=True, slots=True)
class DocumentLookup:
    """Finds documents.

    :param documents: the replica that documents are read from.
    :param is_current: whether that replica has every write. Blocks.
    """

    documents: DocumentReader
    is_current: Callable[[], bool]

    async def by_identity(self, ids: Collection[DocId], scope: Scope) -> Mapping[DocId, Record]:
        """The existing documents of a scope, also those that a caller may not see.

        :raises Unavailable: if the replica lacks a write.
        """
        await self._require_current()
        return await self.documents.fetch(scope, Documents.of_ids(ids))

    async def by_id(self, id_: str, principal: Principal, collection: str | None) -> Record | None:
        """The document of an id, if there is one that the principal may see.

        :raises Ambiguous: if there are several.
        """
        visible = await self._with_id(id_, principal, collection)
        if len(visible) > 1:
            found = ", ".join(sorted(record.document.collection for record in visible))
            raise Ambiguous(f"several documents have the id {id_[:80]!r}: name a collection, one of {found}")
        return visible[0] if visible else None

    async def existing(self, id_: str, principal: Principal, collection: str | None) -> Record:
        """As :meth:`by_id`.

        :raises NotFound: if there is none.
        """
        if (record := await self.by_id(id_, principal, collection)) is None:
            raise NotFound(f"no document {id_[:80]!r}{f' in {collection[:80]!r}' if collection else ''}")
        return record

    async def chunks(self, document: Document, principal: Principal) -> list[Record]:
        """The chunks of a document that the principal may see: of its collection; and of any other that has no document
        of its id, if no further collection has one.

        :raises BadRequest: if there are too many.
        """
        chunks = await self._found(Eq("parent_id", document.id), principal)
        if len(chunks) == _MAX_CHUNKS:
            raise BadRequest(
                f"{document.id[:80]!r} has {_MAX_CHUNKS} chunks or more: delete them by a filter of parent_id"
            )
        if any(chunk.document.collection != document.collection for chunk in chunks):
            is_only = len(await self._with_id(document.id, principal, None)) == 1
            chunks = [each for each in chunks if is_only or each.document.collection == document.collection]
        return chunks

    async def chunks_beside(self, documents: Iterable[Document], principal: Principal) -> list[Record]:
        """The chunks of some documents and of their parents, in the collections of these documents, as far as the
        principal may see them.

        :raises BadRequest: if one document has too many.
        """
        parents: dict[str, set[str]] = {}
        for document in documents:
            ids = parents.setdefault(document.collection, set())
            ids |= {document.id, document.parent_id or document.id}
        found: list[Record] = []
        for collection, ids in parents.items():
            for batch in batches(sorted(ids), _BATCH_PARENTS):
                found += await self._chunks_of(collection, batch, principal)
        return found

    async def _chunks_of(self, collection: str, parents: Sequence[str], principal: Principal) -> list[Record]:
        """The chunks of parents in one collection, looked up for fewer at once where there are many.

        :raises BadRequest: if one parent has too many.
        """
        condition = And((Eq("collection", collection), In("parent_id", tuple(parents))))
        chunks = await self._found(condition, principal)
        if len(chunks) < _MAX_CHUNKS:
            return chunks
        if len(parents) == 1:
            raise BadRequest(f"{parents[0][:80]!r} has {_MAX_CHUNKS} chunks or more: delete them by a filter first")
        half = len(parents) // 2
        of_halves = [await self._chunks_of(collection, each, principal) for each in (parents[:half], parents[half:])]
        return [chunk for chunks in of_halves for chunk in chunks]

    async def _with_id(self, id_: str, principal: Principal, collection: str | None) -> list[Record]:
        """The documents of an id that the principal may see.

        :raises Ambiguous: if there are too many collections to look in.
        """
        access = access_filter(principal.scope, principal.viewer)
        names = {collection} if collection else {DEFAULT_COLLECTION, *await self.documents.counts("collection", access)}
        if len(names) > _MAX_SEARCHED_COLLECTIONS:
            raise Ambiguous(f"there are {len(names)} collections: name that of the document")
        records = await self.by_identity([doc_id(id_, name) for name in names], principal.scope)
        return list(filter(visibility_check(access), records.values()))

    async def _found(self, condition: Filter, principal: Principal) -> list[Record]:
        """At most :data:`_MAX_CHUNKS` documents that match, and that the principal may see."""
        await self._require_current()
        access = access_filter(principal.scope, principal.viewer)
        return await self.documents.find(conjunction(access, normal(condition)), _MAX_CHUNKS)

    async def _require_current(self) -> None:
        if not await anyio.to_thread.run_sync(self.is_current):
            raise Unavailable("the replica that documents are read from does not have all writes yet: try again soon")
