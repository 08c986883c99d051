"""LangChain's own tests of retrievers, and a chain."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_tests.integration_tests import RetrieversIntegrationTests

from orchestrator.client import Unauthenticated
from orchestrator.client.langchain import TriviumRetriever


class TestStandard(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _service(self, url: str) -> None:
        self._url = url

    @property
    def retriever_constructor(self) -> type[TriviumRetriever]:
        return TriviumRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"url": self._url, "timeout_s": 30.0}

    @property
    def retriever_query_example(self) -> str:
        return "film about magicians"


def test_filters_fields_and_provenance(url: str) -> None:
    retriever = TriviumRetriever(url=url, k=3, filter={"year": {"gte": 2010}}, request={"mode": "keyword"})
    found = retriever.invoke("magicians")
    assert {document.id for document in found} == {"film10", "film11"}
    assert found[0].metadata["kind"] in {"drama", "comedy"}
    assert set(found[0].metadata["sources"]) == {"keyword"}
    assert found[0].metadata["score"] > 0
    assert found[0].metadata["url"].startswith("https://example.org/1")
    assert [each.id for each in retriever.invoke("magicians", filter={"year": 2004})] == ["film4"]


def test_the_asynchronous_calls_work_on_several_event_loops(url: str) -> None:
    retriever = TriviumRetriever(url=url, k=2)
    for _ in range(2):
        assert len(asyncio.run(retriever.ainvoke("magicians"))) == 2
    assert [len(each) for each in retriever.batch(["magicians", "rivalry"])] == [2, 2]


def test_a_chain_answers_from_the_documents(url: str) -> None:
    def context(documents: list[Any]) -> str:
        return "\n".join(document.page_content for document in documents)

    prompt = PromptTemplate.from_template("{context}\nQuestion: {question}")
    model = RunnableLambda(lambda value: value.to_string().splitlines()[0])  # says the first line
    retriever = TriviumRetriever(url=url, k=1, request={"mode": "keyword"})
    chain = {"context": retriever | context, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
    assert chain.invoke("number 7") == "A film about magicians and rivalry, number 7."


def test_the_errors_are_those_of_the_client(keyed_url: str) -> None:
    retriever = TriviumRetriever(url=keyed_url, key="trivium_0000000000000000_wrong")
    assert "wrong" not in repr(retriever)
    with pytest.raises(Unauthenticated):
        retriever.invoke("x")
