"""``/v1/documents`` and ``/v1/collections``."""

from __future__ import annotations

import io
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Depends
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import Response

from adapters.model.filter import Eq
from orchestrator.http.endpoint import authorized
from orchestrator.http.request_context import HttpContext, json_response
from orchestrator.http.routes import (
    COLLECTIONS,
    DELETE_COLLECTION,
    DELETE_DOCUMENT,
    DELETE_DOCUMENTS,
    GET_DOCUMENT,
    PUT_DOCUMENTS,
)
from orchestrator.indexing.ndjson import ParsedLine, parse_ndjson
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.search_input import decode_delete_request

_MAX_BODY_BYTES = 67_108_864
_MAX_FILTER_BYTES = 1_048_576
_MAX_LINES = 100_000
_SLICE_BYTES = 1_048_576
"""Lines are counted in slices of this size: counting 64 MiB at once holds the GIL for 30 ms."""


class _AnyText(Convertor[str]):
    """An id in a path may contain slashes and line ends."""

    regex = r"(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("id", _AnyText())

router = APIRouter()


@router.post(PUT_DOCUMENTS.path)
async def put_documents(context: Annotated[HttpContext, Depends(authorized(PUT_DOCUMENTS))]) -> Response:
    """Index NDJSON."""

    async def read_lines() -> list[ParsedLine]:
        return await anyio.to_thread.run_sync(_parse, await context.body(_MAX_BODY_BYTES))

    outcome = await context.service.documents.put(read_lines, context.principal)
    context.log_fields.update(
        indexed=outcome.indexed, pending=outcome.pending, incomplete=outcome.incomplete, rejected=outcome.rejected
    )
    return json_response(outcome)


@router.api_route(COLLECTIONS.path, methods=["GET", "HEAD"])
async def collections(context: Annotated[HttpContext, Depends(authorized(COLLECTIONS))]) -> Response:
    """Every collection that the caller may see."""
    return json_response(await context.service.documents.collections(context.principal))


@router.api_route(GET_DOCUMENT.path.replace("{id}", "{id_:id}"), methods=["GET", "HEAD"])
async def get_document(id_: str, context: Annotated[HttpContext, Depends(authorized(GET_DOCUMENT))]) -> Response:
    """One document."""
    return json_response(await context.service.documents.get(id_, context.principal, _collection(context)))


@router.delete(DELETE_DOCUMENTS.path)
async def delete_documents(context: Annotated[HttpContext, Depends(authorized(DELETE_DOCUMENTS))]) -> Response:
    """Delete the documents that match a filter."""
    dry_run = _flag(context, "dry_run", default=False)
    request = decode_delete_request(await context.body(_MAX_FILTER_BYTES))
    outcome = await context.service.documents.delete_many(request.filter, context.principal, dry_run)
    context.log_fields.update(matched=outcome.matched, deleted=outcome.deleted)
    return json_response(outcome)


@router.delete(DELETE_COLLECTION.path.replace("{id}", "{name:id}"))
async def delete_collection(
    name: str, context: Annotated[HttpContext, Depends(authorized(DELETE_COLLECTION))]
) -> Response:
    """Delete a collection."""
    dry_run = _flag(context, "dry_run", default=False)
    outcome = await context.service.documents.delete_many(Eq("collection", name), context.principal, dry_run)
    context.log_fields.update(matched=outcome.matched, deleted=outcome.deleted)
    return json_response(outcome)


@router.delete(DELETE_DOCUMENT.path.replace("{id}", "{id_:id}"))
async def delete_document(id_: str, context: Annotated[HttpContext, Depends(authorized(DELETE_DOCUMENT))]) -> Response:
    """Delete one document and its chunks."""
    collection, with_chunks = _collection(context, "children"), _flag(context, "children", "collection", default=True)
    outcome = await context.service.documents.delete(id_, context.principal, collection, with_chunks)
    return json_response(outcome)


def _collection(context: HttpContext, *others: str) -> str | None:
    """The parameter ``collection``.

    :param others: other parameters that there may be.
    :raises BadRequest: if there is another parameter, or the collection is empty.
    """
    _check_parameters(context, "collection", *others)
    collection = context.request.query_params.get("collection")
    if collection == "":
        raise BadRequest("collection: empty, allowed is the name of a collection")
    return collection


def _flag(context: HttpContext, name: str, *others: str, default: bool) -> bool:
    """A parameter that is ``true`` or ``false``.

    :param others: other parameters that there may be.
    :raises BadRequest: if there is another parameter, or it has another value.
    """
    _check_parameters(context, name, *others)
    value = context.request.query_params.get(name, str(default).lower())
    if value not in {"true", "false"}:
        raise BadRequest(f"{name}: {value[:80]!r}, allowed are true, false")
    return value == "true"


def _check_parameters(context: HttpContext, *allowed: str) -> None:
    if unknown := sorted(set(context.request.query_params) - set(allowed)):
        raise BadRequest(f"unknown parameter {unknown[0][:80]!r}, allowed are {', '.join(sorted(allowed))}")


def _parse(body: bytes) -> list[ParsedLine]:
    count = sum(body.count(b"\n", start, start + _SLICE_BYTES) for start in range(0, len(body), _SLICE_BYTES))
    if count > _MAX_LINES:
        raise BadRequest(f"the body has {count} lines, allowed are {_MAX_LINES}: send several requests")
    return list(parse_ndjson(io.BytesIO(body)))
