"""A retriever and a query engine of LlamaIndex."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

from orchestrator.client import Unauthenticated
from orchestrator.client.llama_index import TriviumRetriever


def test_nodes_have_scores_and_provenance(url: str) -> None:
    retriever = TriviumRetriever(url, similarity_top_k=3, filter={"year": {"gte": 2010}}, request={"mode": "keyword"})
    nodes = retriever.retrieve("magicians")
    assert {node.node_id for node in nodes} == {"film10", "film11"}
    assert all(node.score is not None and node.score > 0 for node in nodes)
    assert nodes[0].text.startswith("A film about magicians")
    assert set(nodes[0].metadata["sources"]) == {"keyword"}
    for _ in range(2):
        assert len(asyncio.run(retriever.aretrieve("magicians"))) == 2


def test_a_query_engine_answers_from_the_nodes(url: str) -> None:
    retriever = TriviumRetriever(url, similarity_top_k=2)
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    answer = engine.query("film about magicians")
    assert "magicians and rivalry" in str(answer)  # the model of the test says its prompt
    assert len(answer.source_nodes) == 2


def test_the_errors_are_those_of_the_client(keyed_url: str) -> None:
    with pytest.raises(Unauthenticated):
        TriviumRetriever(keyed_url).retrieve("x")
