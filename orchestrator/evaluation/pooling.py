"""Pools: the documents to judge for a query, those that every source and all together find first.

Sparck Jones, van Rijsbergen: "Report on the need for and provision of an 'ideal' information retrieval test
collection", 1975.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from html import unescape
from typing import NamedTuple, TypeAlias

from orchestrator.evaluation.searched_index import require_complete
from orchestrator.schema.hits import SearchHit
from orchestrator.schema.search import HYBRID, SearchResponse

Search: TypeAlias = Callable[[Mapping[str, object]], Awaitable[SearchResponse]]
"""A search with some fields of a request."""

MAX_DEPTH = 50
_MARKS = re.compile(r"</?mark>")


class PooledDocument(NamedTuple):
    """A document to judge.

    :param id: of the document, or of the one that a chunk belongs to.
    :param collections: in which it was found: a judgment holds for all documents of an id.
    :param passage: the part of its text with most words of the query.
    """

    id: str
    collections: tuple[str, ...]
    title: str
    passage: str


async def pool(search: Search, query: str, depth: int) -> Sequence[PooledDocument]:
    """The first documents of each source, and of all together; in an order that does not show who found them, the same
    each time.

    :param depth: documents of each, from 1 to :data:`MAX_DEPTH`.
    :raises IncompleteRun: if a source fails.
    """
    found: dict[str, PooledDocument] = {}

    async def add(mode: str) -> tuple[str, ...]:
        fields = {"query": query, "mode": mode, "limit": depth, "collapse": "parent", "highlight": True}
        response = require_complete(await search(fields), f"{mode}, query {query[:80]!r}")
        for hit in response.hits:
            new = _document(hit)
            known = found.setdefault(new.id, new)
            collections = tuple(sorted({*known.collections, *new.collections}))
            found[new.id] = known._replace(collections=collections)
        return response.route.sources

    for source in await add(HYBRID):
        await add(source)
    return sorted(found.values(), key=lambda each: blake2b(f"{query}\0{each.id}".encode()).digest())


def _document(hit: SearchHit) -> PooledDocument:
    passage = unescape(_MARKS.sub("", hit.snippet or ""))
    return PooledDocument(hit.parent_id or hit.id, (hit.collection,), hit.title, passage)
