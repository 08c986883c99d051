"""The OpenAPI document allows the requests that the service accepts, and no others."""

from __future__ import annotations

import jsonschema
import pytest
from jsonschema import Draft202012Validator

from adapters.model.sources import SOURCES
from fusion.strategy import STRATEGIES, parse
from orchestrator.http.openapi import openapi_document

_DOCUMENT = openapi_document("t", "1", 3, [source.name for source in SOURCES], max_limit=50, has_keys=True)
_REQUEST = {**_DOCUMENT["components"]["schemas"]["SearchRequest"], "components": _DOCUMENT["components"]}
VALID = Draft202012Validator(_REQUEST)


@pytest.mark.parametrize("written", [name + end for name in STRATEGIES for end in ("", "()")])
def test_every_strategy_is_allowed(written: str) -> None:
    parse(written)
    assert VALID.is_valid({"query": "a", "fusion": written})


@pytest.mark.parametrize(
    ("written", "is_valid"),
    [
        ("rrf(k=1)", True),
        ("rrf(k=10000)", True),
        ("rrf(k=10001)", False),
        ("rrf(k=0)", False),
        ("joint_walk(base=0,slope=100, seeds=1000)", True),
        ("joint_walk(seeds=0)", False),
        ("joint_walk(seeds=1001)", False),
        ("joint_walk(base=101)", False),
        ("joint_walk(", False),
        ("dbsf(k=1)", False),
        ("", False),
    ],
)
def test_parameters_of_strategies_have_the_same_bounds(written: str, is_valid: bool) -> None:
    assert VALID.is_valid({"query": "a", "fusion": written}) == is_valid
    if is_valid:
        parse(written)
    else:
        with pytest.raises(ValueError, match=r".+"):
            parse(written)


@pytest.mark.parametrize("space", [" ", "\n", "\x1c", "\x1f", "\x85", "\xa0", "\u2028", "\u3000"])
def test_a_query_of_white_space_is_not_allowed(space: str) -> None:
    assert not VALID.is_valid({"query": space})
    assert VALID.is_valid({"query": f"{space}a"})


@pytest.mark.parametrize(
    ("fields", "is_valid"),
    [
        ({"vector": [0, 0, 1]}, True),
        ({"vector": [0, 0, 0]}, False),
        ({"vector": [1, 1]}, False),
        ({"weights": {"graph": 2}}, True),
        ({"weights": {"grpah": 2}}, False),
        ({"boosts": {"recency": False}}, True),
        ({"boosts": {"newness": True}}, False),
        ({"boosts": {"recency": {"strength": 0.5, "half_life_days": 7}, "importance": {"strength": 1}}}, True),
        ({"boosts": {"recency": {"strength": 1.5}}}, False),
        ({"boosts": {"importance": {"half_life_days": 7}}}, False),
        ({"query": " "}, False),
        ({"mode": "graph"}, True),
        ({"mode": "auto"}, True),
        ({"mode": "sonar"}, False),
        ({"filter": {"op": "eq", "field": "tags", "value": "a"}}, True),
        ({"filter": {"op": "eq", "field": "tenant", "value": "a"}}, False),
        ({"filter": {"op": "exists", "field": "metadata.any\nthing"}}, True),
        ({"filter": {"op": "not", "filter": {"op": "or", "filters": [{"op": "and"}]}}}, True),
        ({"filter": {"op": "range", "field": "importance", "gte": 1}}, True),
        ({"filter": {"op": "eq", "field": "tags", "value": 3}}, False),
        ({"filter": {"op": "eq", "field": "importance", "value": True}}, False),
        ({"filter": {"op": "in", "field": "sensitivity", "values": ["public", "secret"]}}, False),
        ({"filter": {"op": "in", "field": "metadata.a", "values": ["x", 1, False]}}, True),
        ({"filter": {"op": "eq", "field": "created_at", "value": 1e300}}, False),
        ({"filter": {"op": "eq", "field": "created_at", "value": 0}}, True),
        ({"filter": {"op": "range", "field": "id", "gte": 1}}, False),
        ({"filter": {"op": "range", "field": "importance"}}, False),
        ({"filter": {"op": "range", "field": "importance", "gte": None}}, False),
        ({"filter": {"op": "range", "field": "importance", "gte": "2026-01-31T12:00:00Z"}}, False),
        ({"filter": {"op": "range", "field": "created_at", "gte": "2026-01-31T12:00:00Z", "lt": 5}}, True),
    ],
)
def test_the_document_allows_what_the_service_accepts(fields: dict[str, object], is_valid: bool) -> None:
    assert VALID.is_valid({"query": "a", **fields}) == is_valid


def test_the_mode_of_a_response_is_one_of_a_request() -> None:
    schemas = _DOCUMENT["components"]["schemas"]
    modes = schemas["SearchResponse"]["properties"]["mode"]["enum"]
    assert modes == schemas["SearchRequest"]["properties"]["mode"]["enum"]
    assert set(modes) == {"auto", "hybrid", "vector", "graph", "keyword"}


def test_the_document_is_a_valid_schema_and_describes_filters_once() -> None:
    jsonschema.Draft202012Validator.check_schema(_REQUEST)
    assert str(_DOCUMENT).count("'discriminator'") == 1
