"""``/v1/documents`` and ``/v1/collections``."""

from __future__ import annotations

import io
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Depends
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import Response

from orchestrator.http.endpoint import authorized
from orchestrator.http.request_context import HttpContext, json_response
from orchestrator.http.routes import COLLECTIONS, DELETE_DOCUMENT, GET_DOCUMENT, PUT_DOCUMENTS
from orchestrator.indexing.ndjson import ParsedLine, parse_ndjson
from orchestrator.planning.errors import BadRequest

_MAX_BODY_BYTES = 67_108_864
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


@router.delete(DELETE_DOCUMENT.path.replace("{id}", "{id_:id}"))
async def delete_document(id_: str, context: Annotated[HttpContext, Depends(authorized(DELETE_DOCUMENT))]) -> Response:
    """Delete one document."""
    return json_response(await context.service.documents.delete(id_, context.principal, _collection(context)))


def _collection(context: HttpContext) -> str | None:
    """The parameter ``collection``.

    :raises BadRequest: if there is another parameter, or the collection is empty.
    """
    parameters = context.request.query_params
    if unknown := sorted(set(parameters) - {"collection"}):
        raise BadRequest(f"unknown parameter {unknown[0][:80]!r}, allowed is collection")
    collection = parameters.get("collection")
    if collection == "":
        raise BadRequest("collection: empty, allowed is the name of a collection")
    return collection


def _parse(body: bytes) -> list[ParsedLine]:
    count = sum(body.count(b"\n", start, start + _SLICE_BYTES) for start in range(0, len(body), _SLICE_BYTES))
    if count > _MAX_LINES:
        raise BadRequest(f"the body has {count} lines, allowed are {_MAX_LINES}: send several requests")
    return list(parse_ndjson(io.BytesIO(body)))
