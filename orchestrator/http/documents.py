"""``/v1/documents`` and ``/v1/collections``."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from tempfile import SpooledTemporaryFile
from typing import IO, TypeVar
from urllib.parse import urlencode

import anyio.to_thread
import msgspec
from fastapi import APIRouter
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from adapters.model.filter import Eq, Filter
from adapters.model.spelling import allowed_names
from orchestrator.http.endpoint import endpoint_of, serves
from orchestrator.http.request_context import HttpContext, json_response, raw_path
from orchestrator.http.routes import (
    COLLECTIONS,
    DELETE_COLLECTION,
    DELETE_DOCUMENT,
    DELETE_DOCUMENTS,
    GET_DOCUMENT,
    LIST_DOCUMENTS,
    NDJSON,
    NEIGHBORS,
    PUT_DOCUMENTS,
    Operation,
)
from orchestrator.indexing.ndjson import ParsedLine, parse_ndjson
from orchestrator.indexing.not_ndjson import HEAD_BYTES, describe_body
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.documents import DocumentsResponse
from orchestrator.schema.search_input import decode_delete_request, listed_filter
from orchestrator.service.document_reports import with_reason
from orchestrator.service.documents import ChunkHandling

T = TypeVar("T")

_MAX_BODY_BYTES = 67_108_864
_MAX_FILTER_BYTES = 1_048_576
_MAX_LINES = 100_000
_MAX_DIGITS = 9
"""Of a limit: the text is read as a number only if it is short."""
_MAX_BYTES_IN_MEMORY = 262_144
"""Maximum size of a body of documents in memory; a larger one is in a temporary file, and its lines are read from there
when they are written."""


_NEIGHBORS_END = NEIGHBORS.path.rpartition("}")[2]


router = APIRouter()


@serves(router, PUT_DOCUMENTS)
async def put_documents(context: HttpContext) -> Response:
    """Index NDJSON."""
    chunks = _chunk_handling(_parameters(context, PUT_DOCUMENTS))

    with SpooledTemporaryFile(_MAX_BYTES_IN_MEMORY) as file:
        head = b""

        async def read_lines() -> Iterator[ParsedLine]:
            nonlocal head
            await _receive(context, file)
            head = await anyio.to_thread.run_sync(file.read, HEAD_BYTES)
            await anyio.to_thread.run_sync(file.seek, 0)
            return parse_ndjson(file)

        outcome = await context.service.documents.put(read_lines, context.principal, chunks)
    if not outcome.indexed and (reason := describe_body(head)):
        outcome = with_reason(outcome, f"the body is {reason}")
    context.log_fields.update(
        indexed=outcome.indexed, pending=outcome.pending, incomplete=outcome.incomplete, rejected=outcome.rejected
    )
    return json_response(outcome)


@serves(router, LIST_DOCUMENTS)
async def list_documents(context: HttpContext) -> Response:
    """Some documents, and where the next ones begin; one a line if the client accepts NDJSON."""
    parameters = _parameters(context, LIST_DOCUMENTS)
    condition = listed_filter(parameters.get("filter"), _collection(parameters))
    cursor = parameters.get("cursor")
    start = None if cursor is None else _start(cursor)
    page = await context.service.documents.page(context.principal, condition, _limit(parameters, LIST_DOCUMENTS), start)
    next_cursor = None if page.next is None else urlsafe_b64encode(page.next.encode()).decode()
    # In a thread: the vectors of a page that users bring take a tenth of a second.
    documents = await anyio.to_thread.run_sync(lambda: tuple(record.whole for record in page.records))
    context.log_fields.update(documents=len(documents))
    if NDJSON in context.request.headers.get("accept", ""):
        response = Response(msgspec.json.Encoder().encode_lines(documents), media_type=NDJSON)
    else:
        response = json_response(DocumentsResponse(documents, next_cursor))
    if next_cursor:
        following = urlencode({**parameters, "cursor": next_cursor})
        response.headers["Link"] = f'<{LIST_DOCUMENTS.path}?{following}>; rel="next"'
    return response


@serves(router, COLLECTIONS)
async def collections(context: HttpContext) -> Response:
    """Every collection that the caller may see."""
    return json_response(await context.service.documents.collections(context.principal))


@serves(router, GET_DOCUMENT)
async def get_document(context: HttpContext) -> Response:
    """One document."""
    collection = _collection(_parameters(context, GET_DOCUMENT))
    return json_response(await context.service.documents.get(_id(context), context.principal, collection))


async def _get_neighbors(context: HttpContext) -> Response:
    parameters = _parameters(context, NEIGHBORS)
    found = await context.service.neighbors.of(
        _id(context), context.principal, _collection(parameters), _limit(parameters, NEIGHBORS)
    )
    context.log_fields.update(documents=len(found.documents))
    return json_response(found)


class _NeighborsRoute(Route):
    """The end of the path is not that of an id, in which the slash is encoded: ``/v1/documents/a%2Fneighbors``."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if not raw_path(scope).endswith(_NEIGHBORS_END):
            return Match.NONE, {}
        match, found = super().matches(scope)
        return Match.FULL if match is Match.PARTIAL else match, found  # no method is left to the routes of ids


neighbors_route = _NeighborsRoute(
    NEIGHBORS.path.replace("{id}", "{id:id}"), endpoint_of(NEIGHBORS, _get_neighbors), methods=[NEIGHBORS.method]
)
"""It belongs before those of the router, which would take its end for a part of the id."""


@serves(router, DELETE_DOCUMENTS)
async def delete_documents(context: HttpContext) -> Response:
    """Delete the documents that match a filter."""
    dry_run = _flag(_parameters(context, DELETE_DOCUMENTS), "dry_run", default=False)
    request = decode_delete_request(await context.body(_MAX_FILTER_BYTES))
    return await _delete_many(context, request.filter, dry_run)


@serves(router, DELETE_COLLECTION)
async def delete_collection(context: HttpContext) -> Response:
    """Delete a collection."""
    dry_run = _flag(_parameters(context, DELETE_COLLECTION), "dry_run", default=False)
    return await _delete_many(context, Eq("collection", _id(context)), dry_run)


async def _delete_many(context: HttpContext, condition: Filter, dry_run: bool) -> Response:
    outcome = await context.service.documents.delete_many(condition, context.principal, dry_run)
    context.log_fields.update(matched=outcome.matched, deleted=outcome.deleted)
    return json_response(outcome)


@serves(router, DELETE_DOCUMENT)
async def delete_document(context: HttpContext) -> Response:
    """Delete one document and its chunks."""
    parameters = _parameters(context, DELETE_DOCUMENT)
    with_chunks = _flag(parameters, "children", default=True)
    outcome = await context.service.documents.delete(
        _id(context), context.principal, _collection(parameters), with_chunks
    )
    return json_response(outcome)


def _id(context: HttpContext) -> str:
    """The id in the path."""
    id_: str = context.request.path_params["id"]
    return id_


def _parameters(context: HttpContext, operation: Operation) -> dict[str, str]:
    """The parameters of the query.

    :raises BadRequest: if the operation has no parameter of a name, or there are two of it.
    """
    given = context.request.query_params
    names = [name for name, _ in given.multi_items()]
    if unknown := sorted(set(names) - operation.parameters.keys()):
        allowed = allowed_names(unknown[0], sorted(operation.parameters))
        raise BadRequest(f"unknown parameter {unknown[0][:80]!r}, {allowed}")
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise BadRequest(f"parameter {repeated[0]!r} is given {names.count(repeated[0])} times, allowed is once")
    return dict(given)


def _collection(parameters: Mapping[str, str]) -> str | None:
    collection = parameters.get("collection")
    if collection == "":
        raise BadRequest("collection: empty, allowed is the name of a collection")
    return collection


def _chunk_handling(parameters: Mapping[str, str]) -> ChunkHandling | None:
    """What becomes of the chunks of the documents in a body.

    :raises BadRequest: if they are both given and to be made.
    """
    are_given = _choice(parameters, "replace", {"children": True}, default=False)
    if not _flag(parameters, "chunk", default=False):
        return "given" if are_given else None
    if are_given:
        raise BadRequest("replace: not allowed with chunk=true, which replaces the chunks of each document")
    return "split"


def _flag(parameters: Mapping[str, str], name: str, *, default: bool) -> bool:
    return _choice(parameters, name, {"true": True, "false": False}, default=default)


def _choice(parameters: Mapping[str, str], name: str, choices: Mapping[str, T], *, default: T) -> T:
    """What a parameter chooses.

    :raises BadRequest: if it has another value than the choices.
    """
    if (value := parameters.get(name)) is None:
        return default
    if value not in choices:
        raise BadRequest(f"{name}: {value[:80]!r}, {allowed_names(value, list(choices))}")
    return choices[value]


def _limit(parameters: Mapping[str, str], operation: Operation) -> int:
    schema = operation.parameters["limit"]
    value = parameters.get("limit", str(schema["default"]))
    if not (value.isascii() and value.isdecimal() and len(value) <= _MAX_DIGITS):
        raise BadRequest(f"limit: {value[:80]!r}, allowed are {schema['minimum']} to {schema['maximum']}")
    return int(value)


def _start(cursor: str) -> str:
    """Where a page begins.

    :raises BadRequest: if it is no cursor.
    """
    try:
        return urlsafe_b64decode(cursor.encode("ascii")).decode()
    except ValueError:  # also the errors of binascii and of the codecs
        raise BadRequest("cursor: not a cursor of this service, give the next_cursor of a response") from None


async def _receive(context: HttpContext, file: IO[bytes]) -> None:
    """Write the body to a file, and go back to its start.

    :raises HttpError: as :meth:`HttpContext.chunks`.
    :raises BadRequest: if it has too many lines.
    """
    received = bytearray()
    lines = 0
    async for chunk in context.chunks(_MAX_BODY_BYTES, context.byte_budgets.uploads):
        received += chunk
        if len(received) >= _MAX_BYTES_IN_MEMORY:
            lines += await anyio.to_thread.run_sync(_append, file, bytes(received))
            received.clear()
    lines += await anyio.to_thread.run_sync(_append, file, bytes(received))
    if lines > _MAX_LINES:
        raise BadRequest(f"the body has {lines} lines, allowed are {_MAX_LINES}: send several requests")
    await anyio.to_thread.run_sync(file.seek, 0)


def _append(file: IO[bytes], content: bytes) -> int:
    """Returns the number of line ends. Blocks."""
    file.write(content)
    return content.count(b"\n")
