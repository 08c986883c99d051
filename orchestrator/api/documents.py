"""``/v1/documents`` and ``/v1/collections``: what is indexed.

A caller replaces and deletes what it may see, and nothing else: a document above its clearance is refused on
writing, and is not there on reading and deleting.
"""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import wraps
from typing import Any, TypeAlias

import anyio.to_thread
from starlette.responses import Response

from adapters import Record, Scope, TimedOut, Unavailable
from adapters.filter import Filter, access, normal
from orchestrator.api.endpoint import Context, json
from orchestrator.api.problems import HttpError
from orchestrator.contract import (
    BulkResponse,
    CollectionCount,
    CollectionsResponse,
    DeleteResponse,
    LineOutcome,
)
from orchestrator.hydrate import lock
from orchestrator.indexing import lines
from orchestrator.indexing.writer import Progress

_READ_S = 5.0
"""Seconds that reading documents may take."""

_Handler: TypeAlias = Callable[[Context], Coroutine[Any, Any, Response]]


def _in_turn(handler: _Handler) -> _Handler:
    """A write: its tenant's turn comes before its body is read, for what waits must not lie in memory."""

    @wraps(handler)
    async def admitted(context: Context) -> Response:
        seconds = context.service.settings.write_timeout_ms / 1_000
        return await context.service.writes.run(_tenant(context), seconds, lambda: handler(context))

    return admitted


def _in_time(handler: _Handler) -> _Handler:
    """A read: it waits neither for its turn nor for its store as long as a write may."""

    @wraps(handler)
    async def admitted(context: Context) -> Response:
        try:
            async with asyncio.timeout(_READ_S):
                return await context.service.reads.run(_tenant(context), _READ_S, lambda: handler(context))
        except TimeoutError:
            raise TimedOut(f"the documents were not to be had within {_READ_S:g} s") from None

    return admitted


@_in_turn
async def put(context: Context) -> Response:
    """Index NDJSON: every good line is stored, every bad one is answered with what is wrong in it."""
    service, scope = context.service, context.identity.caller.scope
    body = await context.body(service.settings.max_body_bytes)
    read = await anyio.to_thread.run_sync(_read, body, service.settings.max_document_bytes)
    if not read:
        raise HttpError(422, "no documents: the body is NDJSON, one JSON object a line")
    held = await _held(context, {line.document.id for line in read if isinstance(line, lines.Good)})
    may_leave = lock(_allowed(context))
    read = [_refused(line, held, may_leave) for line in read]
    documents = [line.document for line in read if isinstance(line, lines.Good)]
    progress = await service.writer.index(documents, scope)
    outcomes = tuple(_outcome(line, progress, scope) for line in read)
    counts = Counter(outcome.status for outcome in outcomes)
    context.notes |= {**{str(status): count for status, count in counts.items()}, "missing": progress.missing}
    generation = progress.generation or service.index.generation()
    return json(BulkResponse(counts["indexed"], counts["incomplete"], counts["rejected"], generation, outcomes))


@_in_time
async def get(context: Context) -> Response:
    """One document, as it was written."""
    id_ = context.request.path_params["id"]
    record = (await _held(context, [id_])).get(id_)
    if record is None or not lock(_allowed(context))(record):
        raise HttpError(404, f"no document {id_[:80]!r}")
    return json(record.document)


@_in_turn
async def delete(context: Context) -> Response:
    """Delete one document; deleting what is not there is no error, so that it may be tried again."""
    service = context.service
    id_ = context.request.path_params["id"]
    record = (await _held(context, [id_])).get(id_)
    if record is None or not lock(_allowed(context))(record):
        return json(DeleteResponse(id_, False, service.index.generation()))
    done = await service.writer.delete(context.identity.caller.scope, [id_])
    return json(DeleteResponse(id_, True, done.generation, done.missing))


@_in_time
async def collections(context: Context) -> Response:
    """Every collection that the caller may see something of."""
    counts = await context.service.documents.counts("collection", normal(_allowed(context)))
    return json(CollectionsResponse(tuple(CollectionCount(name, count) for name, count in sorted(counts.items()))))


def _outcome(line: lines.Good | lines.Bad, progress: Progress, scope: Scope) -> LineOutcome:
    if isinstance(line, lines.Bad):
        return LineOutcome(line.line, "rejected", error=line.error)
    id_ = line.document.id
    missing = {**progress.missing, **progress.refused.get((scope.tenant, scope.environment, id_), {})}
    return LineOutcome(line.line, "incomplete" if missing else "indexed", id=id_, missing=missing)


def _tenant(context: Context) -> str:
    return context.identity.caller.scope.tenant


def _allowed(context: Context) -> Filter:
    caller = context.identity.caller
    return access(caller.scope, caller.clearance)


async def _held(context: Context, ids: Collection[str]) -> Mapping[str, Record]:
    if not await anyio.to_thread.run_sync(context.service.caught_up):
        raise Unavailable("the store of documents has not taken all writes yet: try again in a moment")
    return await context.service.documents.fetch(context.identity.caller.scope, list(ids))


def _read(body: bytes, max_bytes: int) -> list[lines.Good | lines.Bad]:
    return list(lines.read(io.BytesIO(body), max_bytes))


def _refused(
    line: lines.Good | lines.Bad, held: Mapping[str, Record], may_leave: Callable[[Record], bool]
) -> lines.Good | lines.Bad:
    """A good line is bad if it would replace what its writer may not see."""
    if isinstance(line, lines.Bad) or line.document.id not in held or may_leave(held[line.document.id]):
        return line
    return lines.Bad(
        line.line, f"id: {line.document.id[:80]!r} is taken by a document above your clearance - at `$.id`"
    )
