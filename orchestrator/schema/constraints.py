"""Bounds of requests that JSON schema can express and the types cannot. The planner checks them; the OpenAPI document
shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from adapters.model.document import MAX_VALUE_CHARS
from adapters.model.filter import Filter
from adapters.model.filter_limits import FIELDS, MAX_VALUES
from fusion import STRATEGIES
from orchestrator.schema.search import AUTO, HYBRID, BoostName

_FILTER = {"$ref": "#/components/schemas/Filter"}
_KINDS = len(get_args(Filter))
_FIELD = {"pattern": rf"^({'|'.join(FIELDS)}|metadata\.[\s\S]{{1,256}})$"}
_WALK = "((base|slope)=([1-9]?[0-9]|100)|seeds=([1-9][0-9]{0,2}|1000))"
_FUSION = (
    rf"^({'|'.join(STRATEGIES)})(\(\))?$"
    rf"|^rrf\(k=([1-9][0-9]{{0,3}}|10000)\)$|^joint_walk\({_WALK}(, ?{_WALK}){{0,2}}\)$"
)
_NUMBER = {"anyOf": [{"type": "number"}, {"type": "null"}]}
_DATE = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "number"}, {"type": "null"}]}
_BOUNDS = ("gt", "gte", "lt", "lte")


def with_constraints(
    components: Mapping[str, Any], dimension: int, sources: Iterable[str], max_limit: int
) -> dict[str, Any]:
    """The schemas that msgspec derives from the types, with additional constraints.

    :param dimension: length of a vector.
    :param sources: names of the sources.
    :param max_limit: the largest ``limit`` of a request.
    """
    names = list(sources)
    mode = {"enum": [AUTO, HYBRID, *names]}
    constraints: dict[str, Any] = {
        "SearchRequest": {
            "query": {"pattern": r"\S"},
            "vector": {"minItems": dimension, "maxItems": dimension, "contains": {"not": {"const": 0}}},
            "mode": mode,
            "limit": {"maximum": max_limit},
            "fusion": {"pattern": _FUSION},
            "weights": {"propertyNames": {"enum": names}},
            "boosts": {"propertyNames": {"enum": list(get_args(BoostName))}},
        },
        "SearchResponse": {"mode": mode},
        "Eq": {"field": _FIELD, "value": {"maxLength": MAX_VALUE_CHARS}},
        "In": {"field": _FIELD, "values": {"maxItems": MAX_VALUES}},
        "Exists": {"field": _FIELD},
    }
    union = components["And"]["properties"]["filters"]["items"]
    schemas: dict[str, Any] = _with_filter_reference(components)
    for name, properties in constraints.items():
        for field, constraint in properties.items():
            _constrain(schemas[name]["properties"][field], constraint)
    schemas["In"]["properties"]["values"]["items"]["maxLength"] = MAX_VALUE_CHARS
    schemas["Range"] = {key: schemas["Range"][key] for key in ("title", "description")} | _range()
    schemas["Filter"] = {"title": "Filter", "description": "A condition on the documents to return.", **union}
    return schemas


def _with_filter_reference(schema: Any) -> Any:
    """The same schema with every union of filters replaced by a reference to one schema."""
    match schema:
        case {"anyOf": [{"$ref": _}, *_], "discriminator": {"mapping": mapping}} if len(mapping) == _KINDS:
            return _FILTER
        case dict():
            return {name: _with_filter_reference(value) for name, value in schema.items()}
        case list():
            return [_with_filter_reference(value) for value in schema]
        case _:
            return schema


def _constrain(schema: dict[str, Any], constraint: Mapping[str, Any]) -> None:
    """Constrain the value itself, where it may also be null."""
    target = next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)
    target.update(constraint)


def _range() -> dict[str, Any]:
    """Bounds are numbers, and dates for the one field that has dates. At least one bound is required."""

    def over(field: Mapping[str, Any], bound: Mapping[str, Any]) -> dict[str, Any]:
        properties = {"op": {"enum": ["range"]}, "field": field, **dict.fromkeys(_BOUNDS, bound)}
        present = [{"required": [name], "properties": {name: {"type": ["number", "string"]}}} for name in _BOUNDS]
        return {
            "type": "object",
            "properties": properties,
            "required": ["op", "field"],
            "additionalProperties": False,
            "anyOf": present,
        }

    numbers, dates = over({"type": "string", **_FIELD}, _NUMBER), over({"enum": ["created_at"]}, _DATE)
    return {"anyOf": [numbers, dates]}
