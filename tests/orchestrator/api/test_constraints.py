"""What the OpenAPI document says of requests is what the engine takes and refuses."""

from __future__ import annotations

import jsonschema
import pytest
from jsonschema import Draft202012Validator

from fusion import STRATEGIES, parse
from orchestrator.api import openapi

_DOCUMENT = openapi.document("t", "1", 3, keys=True)
_REQUEST = {**_DOCUMENT["components"]["schemas"]["SearchRequest"], "components": _DOCUMENT["components"]}
VALID = Draft202012Validator(_REQUEST)


@pytest.mark.parametrize("written", [name + end for name in STRATEGIES for end in ("", "()")])
def test_every_strategy_may_be_named(written: str) -> None:
    parse(written)
    assert VALID.is_valid({"query": "a", "fusion": written})


@pytest.mark.parametrize(
    ("written", "good"),
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
def test_their_numbers_have_the_same_bounds(written: str, good: bool) -> None:
    assert VALID.is_valid({"query": "a", "fusion": written}) == good
    if good:
        parse(written)
    else:
        with pytest.raises(ValueError, match=r".+"):
            parse(written)


@pytest.mark.parametrize(
    ("asked", "good"),
    [
        ({"vector": [0, 0, 1]}, True),
        ({"vector": [0, 0, 0]}, False),
        ({"vector": [1, 1]}, False),
        ({"weights": {"graph": 2}}, True),
        ({"weights": {"grpah": 2}}, False),
        ({"boosts": {"recency": False}}, True),
        ({"boosts": {"newness": True}}, False),
        ({"query": " "}, False),
        ({"filter": {"op": "eq", "field": "tags", "value": "a"}}, True),
        ({"filter": {"op": "eq", "field": "tenant", "value": "a"}}, False),
        ({"filter": {"op": "exists", "field": "metadata.any\nthing"}}, True),
        ({"filter": {"op": "not", "filter": {"op": "or", "filters": [{"op": "and"}]}}}, True),
        ({"filter": {"op": "range", "field": "importance", "gte": 1}}, True),
        ({"filter": {"op": "range", "field": "importance"}}, False),
        ({"filter": {"op": "range", "field": "importance", "gte": None}}, False),
        ({"filter": {"op": "range", "field": "importance", "gte": "2026-01-31T12:00:00Z"}}, False),
        ({"filter": {"op": "range", "field": "created_at", "gte": "2026-01-31T12:00:00Z", "lt": 5}}, True),
    ],
)
def test_requests_are_described_as_they_are_taken(asked: dict[str, object], good: bool) -> None:
    assert VALID.is_valid({"query": "a", **asked}) == good


def test_the_document_is_a_schema_and_names_a_filter_once() -> None:
    jsonschema.Draft202012Validator.check_schema(_REQUEST)
    assert str(_DOCUMENT).count("'discriminator'") == 1
