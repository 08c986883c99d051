"""The OpenAPI document, from the table of operations and the types that they read and write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from orchestrator.http.errors import STATUSES
from orchestrator.http.routes import NDJSON, OPERATIONS, Operation
from orchestrator.schema.constraints import with_constraints
from orchestrator.schema.problem import Problem

_REFERENCE = "#/components/schemas/{name}"
_NO_PUNCTUATION = str.maketrans("", "", "/{}")


_CALLER = (
    "An API key. With one that has no user and no teams, the headers `X-Trivium-User` and `X-Trivium-Teams`, with "
    "commas, say on whose behalf a request is sent: documents that they may not see are hidden."
)


def openapi_document(
    title: str, version: str, dimension: int, sources: Iterable[str], max_limit: int, has_keys: bool
) -> dict[str, Any]:
    """OpenAPI 3.1.

    :param dimension: length of a vector.
    :param sources: names of the sources.
    :param max_limit: the largest ``limit`` of a search.
    :param has_keys: whether there are keys; otherwise no operation needs one.
    """
    operations = [each for each in OPERATIONS if each.is_documented]
    types = {kind for operation in operations for kind in (operation.body, operation.response) if kind}
    ordered = sorted(types | {Problem}, key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(ordered, ref_template=_REFERENCE)
    schema_by_type = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = _describe(operation, schema_by_type, has_keys)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {
            "schemas": with_constraints(components, dimension, sources, max_limit),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": _CALLER}},
        },
    }


def _describe(operation: Operation, schema_by_type: dict[type, Any], has_keys: bool) -> dict[str, Any]:
    problem = {"application/problem+json": {"schema": schema_by_type[Problem]}}
    success = {
        each: {"schema": {"type": "string"} if each == NDJSON else schema_by_type[operation.response]}
        for each in operation.response_media_types
    }
    described: dict[str, Any] = {
        "operationId": f"{operation.method.lower()}{operation.path.title().translate(_NO_PUNCTUATION)}",
        "summary": operation.summary,
        "responses": {
            "200": {"description": "success", "content": success},
            **{str(s): {"description": STATUSES[s], "content": success} for s in operation.other_statuses},
            **{str(s): {"description": STATUSES[s], "content": problem} for s in operation.problems},
        },
    }
    if has_keys and operation.role != "none":
        described["security"] = [{"key": []}]
    if operation.body:
        described["requestBody"] = {
            "required": True,
            "content": {operation.media_type: {"schema": schema_by_type[operation.body]}},
        }
        if operation.media_type == NDJSON:
            described["requestBody"]["description"] = "one object of this schema per line"
    parameters: list[dict[str, Any]] = []
    if "{id}" in operation.path:
        parameters.append({"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}})
    parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in operation.parameters.items()]
    if parameters:
        described["parameters"] = parameters
    return described
