"""``get_document``, ``list_collections``, ``store_document`` and ``delete_document``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

import anyio.to_thread
import msgspec

from adapters import Document
from adapters.model.document import METADATA, values_of
from adapters.model.filter import Eq
from orchestrator.indexing.ndjson import ParsedLine, parse_ndjson
from orchestrator.mcp.answers import Answer, exact, unless_shared
from orchestrator.mcp.arguments import DeleteDocument, GetDocument, ListCollections
from orchestrator.mcp.caller import Caller
from orchestrator.planning.errors import BadRequest
from orchestrator.results.lines import one_line
from orchestrator.results.tokens import Measure
from orchestrator.schema.search import DEFAULT_TOKENS

_TITLE_CHARS, _EXAMPLE_CHARS, _NAME_CHARS = 200, 40, 80
_MAX_COLLECTIONS, _MAX_WITH_FIELDS = 500, 20
"""Collections that are listed, the largest first, and those with their fields."""
_SAMPLED = 20
"""Documents of a collection whose fields are shown."""
_MAX_FIELDS = 40
_FIELDS = (
    *("parent_id", "chunk_index", "url", "created_at", "importance", "sensitivity", "visibility", "owner", "team"),
    *("tags", "language"),
)
"""Fields of documents that filters can test, beside id, collection and metadata."""


async def get_document(arguments: GetDocument, caller: Caller) -> Answer:
    """A document: its fields, and as much of its text as fits."""
    document = await caller.service.documents.get(arguments.id, caller.principal, arguments.collection)
    if arguments.start > len(document.text):
        raise BadRequest(f"from: {arguments.start}, allowed are 0 to {len(document.text)}, the length of the text")
    measure = caller.service.search.measure
    return Answer(await anyio.to_thread.run_sync(_rendered, measure, document, arguments))


def _rendered(measure: Measure, document: Document, arguments: GetDocument) -> str:
    """The document in lines. Blocks.

    :raises BadRequest: if nothing of the text fits.
    """
    limit, start, length = arguments.max_tokens, arguments.start, len(document.text)
    head = measure.cut("\n".join(_described(document)), limit // 2)

    def with_text(shown: str) -> str:
        end = start + len(shown)
        rest = (
            "" if end == length else f"\n\nThe text goes on: {_next_call(document, end, arguments)} returns the rest."
        )
        return f"{head}\ncharacters {start} to {end} of {length}:\n\n{shown}{rest}"

    shown = document.text[start:]
    while measure.tokens(with_text(shown)) > limit:
        room = limit - measure.tokens(with_text("")) if shown == document.text[start:] else measure.tokens(shown) - 8
        shown = measure.cut(shown, room)
        if not shown:
            needed = 2 * measure.tokens(with_text(""))
            raise BadRequest(f"max_tokens: {limit}, allowed are {needed} and more for a document with such a long id")
    return with_text(shown)


def _next_call(document: Document, start: int, arguments: GetDocument) -> str:
    call = {"id": document.id, "collection": document.collection, "from": start, "max_tokens": arguments.max_tokens}
    return f"get_document({json.dumps(call, ensure_ascii=not document.id.isprintable())})"


def _described(document: Document) -> list[str]:
    kind = "artifact" if document.parent_id is None else f"chunk of {exact(document.parent_id)}"
    lines = [f"[{kind}] id: {exact(document.id)}"]
    if document.title:
        lines.append(f"title: {one_line(document.title, _TITLE_CHARS)}")
    facts = [f"collection {exact(document.collection)}", document.sensitivity, *unless_shared(document.visibility)]
    if document.created_at is not None:
        facts.append(document.created_at.isoformat())
    if document.tags:
        facts.append(f"tags {one_line(', '.join(document.tags), _TITLE_CHARS)}")
    lines.append("; ".join(facts))
    if document.metadata:
        metadata = msgspec.json.encode(document.metadata).decode()
        lines.append(f"metadata: {one_line(metadata, 2 * _TITLE_CHARS)}")
    if document.url:
        lines.append(f"evidence: {one_line(document.url, 2 * _TITLE_CHARS)}")
    return lines


async def list_collections(arguments: ListCollections, caller: Caller) -> Answer:
    """Every collection, with its fields and an example of each."""
    del arguments
    documents, principal = caller.service.documents, caller.principal
    listed = await documents.collections(principal)
    collections = sorted(listed.collections, key=lambda each: (-each.documents, each.name))
    blocks = []
    for number, each in enumerate(collections[:_MAX_COLLECTIONS]):
        block = f"{exact(each.name)}: {each.documents} documents"
        if number < _MAX_WITH_FIELDS:
            page = await documents.page(principal, Eq("collection", each.name), _SAMPLED)
            examples = _examples([record.document for record in page.records])
            fields = ", ".join(f"{name} ({example})" for name, example in examples.items())
            block += f"\nfields with an example: {fields or 'none but id, title and text'}"
        blocks.append(block)
    count = f"{len(collections)} collections" if len(collections) != 1 else "1 collection"
    head = f"{count}; the last write has the generation {documents.generation()}."
    if not collections:
        head = "There are no documents that you may see."

    def on_cut(kept: int, _: int) -> str:
        return f"{len(collections) - kept} smaller collections are not listed; GET /v1/collections lists all."

    if len(collections) > _MAX_COLLECTIONS:
        head = f"{head}\n{on_cut(_MAX_COLLECTIONS, 0)}"

    measure = caller.service.search.measure
    text, _ = await anyio.to_thread.run_sync(measure.fitted, head, blocks, DEFAULT_TOKENS, on_cut)
    return Answer(text)


def _examples(documents: list[Document]) -> dict[str, str]:
    """The fields that these documents have, each with the value of the first one that has it."""
    examples: dict[str, str] = {}
    for document in documents:
        for name in _FIELDS:
            value = getattr(document, name)
            if value is not None and value != ():
                examples.setdefault(name, _example(value[0] if isinstance(value, tuple) else value))
        for key, metadatum in document.metadata.items():
            if (value := next((each for each in values_of(metadatum) if each is not None), None)) is not None:
                examples.setdefault(f"{METADATA}{one_line(key, _NAME_CHARS)}", _example(value))
    return dict(list(examples.items())[:_MAX_FIELDS])


def _example(value: object) -> str:
    return one_line(msgspec.json.encode(value).decode(), _EXAMPLE_CHARS)


async def store_document(fields: Mapping[str, Any], caller: Caller) -> Answer:
    """Write one document, or replace it.

    :raises BadRequest: if it is not a document, or a document that the caller may not see has its id.
    """
    line = msgspec.json.encode({name: value for name, value in fields.items() if value is not None})

    async def lines() -> Iterator[ParsedLine]:
        return parse_ndjson(BytesIO(line))

    outcome = await caller.service.documents.put(lines, caller.principal)
    (of_line,) = outcome.lines
    if of_line.error is not None:
        raise BadRequest(of_line.error)
    collection = fields.get("collection") or "documents"
    stored = f"Stored {of_line.id!r} in the collection {collection!r}, generation {outcome.generation}."
    if of_line.missing:
        lacking = "; ".join(f"{replica}: {reason}" for replica, reason in of_line.missing.items())
        stored += f" The write is durable, and is still missing in: {one_line(lacking, 2 * _TITLE_CHARS)}."
    return Answer(stored)


async def delete_document(arguments: DeleteDocument, caller: Caller) -> Answer:
    """Delete one document, and its chunks."""
    outcome = await caller.service.documents.delete(
        arguments.id, caller.principal, arguments.collection, arguments.with_chunks
    )
    if outcome.deleted is False:
        return Answer(f"There is no document {arguments.id!r} that you may delete.")
    chunks = f" and {outcome.chunks} chunks of it" if outcome.chunks else ""
    if outcome.deleted is None:
        return Answer(f"The delete of {arguments.id!r}{chunks} is durable; whether there was one is not known yet.")
    return Answer(f"Deleted {arguments.id!r}{chunks}, generation {outcome.generation}.")
