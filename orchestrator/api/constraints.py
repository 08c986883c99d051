"""What requests must keep to beyond their types, as far as a JSON schema can say it: the engine checks it, and whoever
reads the OpenAPI document should know before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from adapters.filter import FIELDS, MAX_VALUES, Filter
from fusion import STRATEGIES
from orchestrator.contract import SOURCES, Boost

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


def stricter(components: Mapping[str, Any], dimension: int) -> dict[str, Any]:
    """The schemas that msgspec makes of the types, with what it does not know of.

    :param dimension: how long the vectors are.
    """
    more: dict[str, Any] = {
        "SearchRequest": {
            "query": {"pattern": r"\S"},
            "vector": {"minItems": dimension, "maxItems": dimension, "contains": {"not": {"const": 0}}},
            "fusion": {"pattern": _FUSION},
            "weights": {"propertyNames": {"enum": list(SOURCES)}},
            "boosts": {"propertyNames": {"enum": list(get_args(Boost))}},
        },
        "Eq": {"field": _FIELD},
        "In": {"field": _FIELD, "values": {"maxItems": MAX_VALUES}},
        "Exists": {"field": _FIELD},
    }
    union = components["And"]["properties"]["filters"]["items"]
    named: dict[str, Any] = _with_filters_named(components)
    for name, properties in more.items():
        for field, constraint in properties.items():
            _constrain(named[name]["properties"][field], constraint)
    named["Range"] = {key: named["Range"][key] for key in ("title", "description")} | _range()
    named["Filter"] = {"title": "Filter", "description": "What a search may return.", **union}
    return named


def _with_filters_named(schema: Any) -> Any:
    """The same, with one name for what a filter may be: it holds others, and each would say it all again."""
    match schema:
        case {"anyOf": [{"$ref": _}, *_], "discriminator": {"mapping": mapping}} if len(mapping) == _KINDS:
            return _FILTER
        case dict():
            return {name: _with_filters_named(value) for name, value in schema.items()}
        case list():
            return [_with_filters_named(value) for value in schema]
        case _:
            return schema


def _constrain(schema: dict[str, Any], constraint: Mapping[str, Any]) -> None:
    """On the value itself, where it may also be null."""
    target = next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)
    target.update(constraint)


def _range() -> dict[str, Any]:
    """Numbers, of any field; or dates, too, of the one that has them. One bound at least."""

    def over(field: Mapping[str, Any], bound: Mapping[str, Any]) -> dict[str, Any]:
        properties = {"op": {"enum": ["range"]}, "field": field, **dict.fromkeys(_BOUNDS, bound)}
        given = [{"required": [name], "properties": {name: {"type": ["number", "string"]}}} for name in _BOUNDS]
        return {
            "type": "object",
            "properties": properties,
            "required": ["op", "field"],
            "additionalProperties": False,
            "anyOf": given,
        }

    numbers, dates = over({"type": "string", **_FIELD}, _NUMBER), over({"enum": ["created_at"]}, _DATE)
    return {"anyOf": [numbers, dates]}
