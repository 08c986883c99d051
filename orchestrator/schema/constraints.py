"""Bounds of requests that JSON schema can express and the types cannot. The planner checks them; the OpenAPI document
shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

import msgspec

from adapters.model.dates import FIRST_S, LAST_S
from adapters.model.document import MAX_VALUE_CHARS
from adapters.model.filter import Filter
from adapters.model.filter_limits import FIELDS, MAX_VALUES
from adapters.model.filter_values import DATE_FIELDS, NAMED_VALUES, NUMBER_FIELDS
from fusion.strategy import STRATEGIES
from orchestrator.schema.flat_filter import BOUNDS, FULL_FORM
from orchestrator.schema.hits import ALWAYS_RETURNED, HIT_FIELDS
from orchestrator.schema.search import AUTO, FIELDS_OF_RANKING, HYBRID, BoostName, SearchRequest

_FILTER = {"$ref": "#/components/schemas/Filter"}
_KINDS = len(get_args(Filter))
_FIELD_NAME = rf"{'|'.join(FIELDS)}|metadata\.[\s\S]{{1,256}}"
_FIELD = {"pattern": f"^({_FIELD_NAME})$"}
_WALK = "((base|slope)=([1-9]?[0-9]|100)|seeds=([1-9][0-9]{0,2}|1000))"
_FUSION = (
    rf"^({'|'.join(STRATEGIES)})(\(\))?$"
    rf"|^rrf\(k=([1-9][0-9]{{0,3}}|10000)\)$|^joint_walk\({_WALK}(, ?{_WALK}){{0,2}}\)$"
)
_NOT_ONLY_SPACE = r"[^\s\x1c-\x1f\x85]"
"""ECMA-262 does not count these as white space; Unicode and Python do."""
_METADATA = r"^metadata\.[\s\S]{1,256}$"
_DATE = {
    "anyOf": [
        {"type": "string", "format": "date-time"},
        {"type": "string", "format": "date"},
        {"type": "number", "minimum": FIRST_S, "maximum": LAST_S},
    ]
}


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
    vector = {"minItems": dimension, "maxItems": dimension, "contains": {"not": {"const": 0}}}
    constraints: dict[str, Any] = {
        "SearchRequest": {
            "vector": vector,
            "mode": mode,
            "limit": {"minimum": 1, "maximum": max_limit},
            "fusion": {"pattern": _FUSION},
            "sort": {"pattern": f"^-?({_FIELD_NAME})$"},
            "facets": {"propertyNames": {"pattern": f"^({_FIELD_NAME})$"}},
            "weights": {"propertyNames": {"enum": names}},
            "boosts": {"propertyNames": {"enum": list(get_args(BoostName))}, "properties": _boosts_without_age()},
        },
        "SearchResponse": {"mode": mode},
        "Document": {"vector": vector},
        "Exists": {"field": _FIELD},
    }
    union = components["And"]["properties"]["filters"]["items"]
    schemas: dict[str, Any] = _with_filter_reference(components)
    for name, properties in constraints.items():
        for field, constraint in properties.items():
            _constrain(schemas[name]["properties"][field], constraint)
    comparisons = {
        "Eq": _compared("eq", "value", lambda value: value),
        "In": _compared("in", "values", lambda value: {"type": "array", "items": value, "maxItems": MAX_VALUES}),
        "Range": _range(),
    }
    for name, schema in comparisons.items():
        schemas[name] = {key: schemas[name][key] for key in ("title", "description")} | schema
    schemas["Document"]["properties"]["created_at"] = {"anyOf": [*_DATE["anyOf"], {"type": "null"}], "default": None}
    schemas["Filter"] = {
        "title": "Filter",
        "description": "A condition on the documents to return, in full or in short.",
        "anyOf": [union, {"$ref": "#/components/schemas/FlatFilter"}],
    }
    schemas["FlatFilter"] = _flat_filter()
    schemas["SearchRequest"]["properties"]["fields"]["anyOf"][0]["items"] = {"enum": list(HIT_FIELDS)}
    schemas["SearchRequest"]["anyOf"] = _ways_to_search()
    schemas["SearchHit"]["required"] = list(ALWAYS_RETURNED)
    return schemas


def _ways_to_search() -> list[dict[str, Any]]:
    """What a request has: a query; what the hits are like; or neither, to list what matches."""
    null: dict[str, Any] = {"type": "null"}
    given, empty = {"not": null}, {"const": ""}
    text = {"minLength": 1, "pattern": _NOT_ONLY_SPACE}
    like = {"query": empty, "like": given, "sort": null, "min_confidence": {"enum": [None, 0]}}
    unset = msgspec.to_builtins(SearchRequest(query=""))
    unranked = {name: {"enum": [unset[name]]} for name in FIELDS_OF_RANKING}
    return [
        {"properties": {"query": text, "like": null, "sort": null}},
        {"properties": like, "required": ["like"]},
        {
            "properties": {**unranked, "query": empty, "like": null, "mode": {"enum": [AUTO, HYBRID]}},
            "anyOf": [{"required": [name], "properties": {name: given}} for name in ("filter", "collections")],
        },
    ]


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


def _boosts_without_age() -> dict[str, Any]:
    """The values of boosts that have no half-life."""
    strength = {"type": "number", "minimum": 0, "maximum": 1}
    properties = {"strength": strength, "half_life_days": {"type": "null"}}
    value = {
        "anyOf": [{"type": "boolean"}, {"type": "object", "properties": properties, "additionalProperties": False}]
    }
    return {name: value for name in get_args(BoostName) if name != "recency"}


def _by_kind() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The fields of a filter, and the values that each can have."""
    text, number = {"type": "string", "maxLength": MAX_VALUE_CHARS}, {"type": "number"}
    others = (NAMED_VALUES, NUMBER_FIELDS, DATE_FIELDS)
    texts = [field for field in FIELDS if not any(field in each for each in others)]
    return [
        ({"enum": texts}, text),
        *(({"enum": [field]}, {"enum": list(allowed)}) for field, allowed in NAMED_VALUES.items()),
        ({"enum": list(NUMBER_FIELDS)}, number),
        ({"enum": list(DATE_FIELDS)}, _DATE),
        ({"type": "string", "pattern": _METADATA}, {"anyOf": [text, number, {"type": "boolean"}]}),
    ]


def _compared(op: str, value_name: str, of_value: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """An object that compares a field with values of its kind."""
    return {"anyOf": [_object(op, field, {value_name: of_value(value)}) for field, value in _by_kind()]}


def _range() -> dict[str, Any]:
    """Bounds are numbers, and dates for the fields that have dates. At least one bound is required."""

    def over(field: Mapping[str, Any], bound: Mapping[str, Any]) -> dict[str, Any]:
        bounds = {name: {"anyOf": [bound, {"type": "null"}]} for name in BOUNDS}
        present = [{"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in BOUNDS]
        return {**_object("range", field, bounds), "required": ["op", "field"], "anyOf": present}

    numbers = [over(field, value) for field, value in _by_kind() if value == {"type": "number"}]
    metadata = over({"type": "string", "pattern": _METADATA}, {"type": "number"})
    return {"anyOf": [*numbers, metadata, over({"enum": list(DATE_FIELDS)}, _DATE)]}


def _flat_filter() -> dict[str, Any]:
    """Fields and keys of metadata with a value, values or bounds each."""

    def compared(value: Mapping[str, Any], bound: Mapping[str, Any] | None) -> dict[str, Any]:
        bounds = {
            "type": "object",
            "properties": dict.fromkeys(BOUNDS, bound),
            "minProperties": 1,
            "additionalProperties": False,
        }
        allowed = [value, {"type": "array", "items": value, "maxItems": MAX_VALUES}]
        return {"anyOf": [*allowed, bounds] if bound else allowed}

    number = {"type": "number"}
    bounds_of = dict.fromkeys(NUMBER_FIELDS, number) | dict.fromkeys(DATE_FIELDS, _DATE)
    fields = {
        field: compared(value, bounds_of.get(field)) for kind, value in _by_kind() for field in kind.get("enum", ())
    }
    text_number_or_truth = _by_kind()[-1][1]
    return {
        "title": "FlatFilter",
        "description": "Every field has the value, one of the values, or a value within the bounds. Other names than "
        "those of fields are keys of the metadata.",
        "type": "object",
        "properties": fields,
        "minProperties": 1,
        "maxProperties": 16,
        "propertyNames": {"minLength": 1, "maxLength": 256, "not": {"enum": list(FULL_FORM)}},
        "additionalProperties": compared(text_number_or_truth, number),
    }


def _object(op: str, field: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    properties = {"op": {"enum": [op]}, "field": field, **others}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
