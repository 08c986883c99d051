"""A component in a pipeline of Haystack."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from haystack import Pipeline
from haystack.components.builders import PromptBuilder
from haystack.utils import Secret

from orchestrator.client import InvalidRequest, Unauthenticated
from orchestrator.client.haystack import TriviumRetriever, as_filter

FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"year": {"gte": 2010}}, {"film10", "film11"}),
    ({"field": "meta.year", "operator": ">=", "value": 2010}, {"film10", "film11"}),
    ({"field": "meta.year", "operator": "==", "value": 2004}, {"film4"}),
    ({"field": "meta.year", "operator": "in", "value": [2004, 2005]}, {"film4", "film5"}),
    (
        {
            "operator": "AND",
            "conditions": [
                {"field": "meta.kind", "operator": "!=", "value": "drama"},
                {"operator": "NOT", "conditions": [{"field": "meta.year", "operator": "<", "value": 2008}]},
            ],
        },
        {"film8", "film10"},
    ),
    (
        {
            "operator": "OR",
            "conditions": [
                {"field": "id", "operator": "==", "value": "film1"},
                {"field": "meta.year", "operator": ">", "value": 2010},
            ],
        },
        {"film1", "film11"},
    ),
    ({"field": "id", "operator": "not in", "value": [f"film{n}" for n in range(11)]}, {"film11"}),
]


@pytest.mark.parametrize(("filters", "ids"), FILTERS)
def test_filters_are_those_of_the_api_or_of_haystack(url: str, filters: dict[str, Any], ids: set[str]) -> None:
    retriever = TriviumRetriever(url, api_key=None, request={"mode": "keyword"})
    assert {each.id for each in retriever.run("magicians", filters=filters)["documents"]} == ids


def test_an_unknown_operator_is_an_error() -> None:
    for wrong in ({"operator": "XOR", "conditions": []}, {"field": "a", "operator": "~", "value": 1}):
        with pytest.raises(ValueError, match="is none of a filter, allowed are"):
            as_filter(wrong)


def test_a_pipeline_runs_and_is_stored(url: str) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", TriviumRetriever(url, top_k=1, request={"mode": "keyword"}))
    pipeline.add_component("prompt", PromptBuilder("{{ documents[0].content }} {{ question }}", required_variables="*"))
    pipeline.connect("retriever.documents", "prompt.documents")
    inputs = {"retriever": {"query": "number 7"}, "prompt": {"question": "Which film?"}}
    expected = "A film about magicians and rivalry, number 7. Which film?"
    assert pipeline.run(inputs)["prompt"]["prompt"] == expected
    restored = Pipeline.loads(pipeline.dumps(), allowed_modules=["orchestrator.client.haystack"])
    assert restored.run(inputs)["prompt"]["prompt"] == expected


def test_an_asynchronous_pipeline(url: str) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", TriviumRetriever(url, top_k=2))
    for _ in range(2):
        found = asyncio.run(pipeline.run_async({"retriever": {"query": "magicians"}}))["retriever"]["documents"]
        assert [each.score > 0 for each in found] == [True, True]
        assert set(found[0].meta) >= {"title", "url", "year", "sources", "score"}


def test_the_errors_are_those_of_the_client(url: str, keyed_url: str) -> None:
    with pytest.raises(Unauthenticated):
        TriviumRetriever(keyed_url, Secret.from_token("trivium_x")).run("x")
    with pytest.raises(InvalidRequest, match="limit: 0"):
        TriviumRetriever(url).run("x", top_k=0)
