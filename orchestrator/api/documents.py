"""``/v1/documents`` and ``/v1/collections``: what is indexed."""

from __future__ import annotations

import io

from starlette.responses import Response

from adapters.document import fields
from adapters.filter import access, matches, normal
from orchestrator.api.endpoint import Context, json
from orchestrator.api.problems import HttpError
from orchestrator.contract import (
    BulkResponse,
    CollectionCount,
    CollectionsResponse,
    DeleteResponse,
    LineOutcome,
)
from orchestrator.indexing import lines


async def put(context: Context) -> Response:
    """Index NDJSON: every good line is stored, every bad one is answered with what is wrong in it."""
    service = context.service
    body = await context.body(service.settings.max_body_bytes)
    read = list(lines.read(io.BytesIO(body), service.settings.max_document_bytes))
    if not read:
        raise HttpError(422, "no documents: the body is NDJSON, one JSON object a line")
    documents = [line.document for line in read if isinstance(line, lines.Good)]
    progress = await service.writer.index(documents, service.caller.scope)
    outcomes = tuple(
        LineOutcome(line.line, "indexed", id=line.document.id)
        if isinstance(line, lines.Good)
        else LineOutcome(line.line, "rejected", error=line.error)
        for line in read
    )
    context.notes.update(indexed=len(documents), rejected=len(read) - len(documents))
    generation = progress.generation or service.library.generation()
    return json(BulkResponse(len(documents), len(read) - len(documents), generation, outcomes))


async def get(context: Context) -> Response:
    """One document, as it was written."""
    service = context.service
    id_ = context.request.path_params["id"]
    records = await service.library.fetch(service.caller.scope, [id_])
    record = records.get(id_)
    allowed = access(service.caller.scope, service.caller.clearance)
    if record is None or not matches(allowed, fields(record)):
        raise HttpError(404, f"no document {id_[:80]!r}")
    return json(record.document)


async def delete(context: Context) -> Response:
    """Delete one document; deleting what is not there is no error, so that it may be tried again."""
    service = context.service
    id_ = context.request.path_params["id"]
    there = id_ in await service.library.fetch(service.caller.scope, [id_])
    generation = await service.writer.delete(service.caller.scope, [id_])
    return json(DeleteResponse(id_, there, generation))


async def collections(context: Context) -> Response:
    """Every collection that the caller may see something of."""
    service = context.service
    allowed = normal(access(service.caller.scope, service.caller.clearance))
    counts = sorted(service.library.counts("collection", allowed).items())
    return json(CollectionsResponse(tuple(CollectionCount(name, count) for name, count in counts)))
