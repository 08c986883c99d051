"""The OpenAPI document, from the table of routes and the types that they read and write."""

from __future__ import annotations

from typing import Any

import msgspec

from orchestrator import contract
from orchestrator.api.constraints import stricter
from orchestrator.api.problems import STATUSES
from orchestrator.api.routes import JSON, NDJSON, OPERATIONS, Operation

_REF = "#/components/schemas/{name}"


def document(title: str, version: str, dimension: int, keys: bool) -> dict[str, Any]:
    """OpenAPI 3.1.

    :param dimension: how long the vectors are.
    :param keys: whether there are keys; else none is needed for anything.
    """
    types = {kind for operation in OPERATIONS for kind in (operation.takes, operation.gives) if kind}
    ordered = sorted(types | {contract.Problem}, key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(ordered, ref_template=_REF)
    components = stricter(components, dimension)
    schema_of = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schema_of, keys)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(operation: Operation, schema_of: dict[type, Any], keys: bool) -> dict[str, Any]:
    problem = {"application/problem+json": {"schema": schema_of[contract.Problem]}}
    given = {JSON: {"schema": schema_of[operation.gives]}}
    described: dict[str, Any] = {
        "operationId": f"{operation.method.lower()}{operation.path.title().translate(_NO_PUNCTUATION)}",
        "summary": (operation.handler.__doc__ or "").split("\n")[0],
        "responses": {
            "200": {"description": "done", "content": given},
            **{str(s): {"description": STATUSES[s], "content": given} for s in operation.also},
            **{str(s): {"description": STATUSES[s], "content": problem} for s in operation.problems},
        },
    }
    if keys and operation.needs != "nothing":
        described["security"] = [{"key": []}]
    if operation.takes:
        described["requestBody"] = {
            "required": True,
            "content": {operation.media: {"schema": schema_of[operation.takes]}},
        }
        if operation.media == NDJSON:
            described["requestBody"]["description"] = "one object of this schema a line"
    if "{id}" in operation.path:
        described["parameters"] = [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        ]
    return described


_NO_PUNCTUATION = str.maketrans("", "", "/{}")
