"""Peers over three sources that return 100 documents after 5 ms, fused by reciprocal rank.

Run by the Python of an environment of its own: ``python peers.py NAME CONCURRENCY SECONDS`` prints µs of CPU per
query, and queries per second. Each peer is used as its documentation shows for asynchronous hybrid retrieval.
"""

# ruff: noqa: ARG002, PLC0415
# Each peer is imported by its own function, and its methods have the parameters that it requires.

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter, process_time
from typing import Any

DELAY_S, DEPTH, LIMIT, SOURCES = 0.005, 100, 10, 3
Search = Callable[[], Awaitable[Any]]


def ids(source: int) -> list[str]:
    """The documents of a source: half of them are in the next source, too."""
    return [f"document-{source * DEPTH // 2 + rank}" for rank in range(DEPTH)]


def bare() -> Search:
    """asyncio and a dictionary."""

    async def source(number: int) -> list[str]:
        await asyncio.sleep(DELAY_S)
        return ids(number)

    async def search() -> list[tuple[str, float]]:
        scores: dict[str, float] = {}
        for ranking in await asyncio.gather(*(source(number) for number in range(SOURCES))):
            for rank, id_ in enumerate(ranking, start=1):
                scores[id_] = scores.get(id_, 0.0) + 1 / (60 + rank)
        return sorted(scores.items(), key=lambda item: -item[1])[:LIMIT]

    return search


def haystack() -> Search:
    """A ``Pipeline`` of retrievers and a ``DocumentJoiner``."""
    from haystack import Document, Pipeline, component
    from haystack.components.joiners import DocumentJoiner

    @component
    class Source:
        def __init__(self, number: int) -> None:
            self.number = number

        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            raise NotImplementedError

        @component.output_types(documents=list[Document])
        async def run_async(self, query: str) -> dict[str, Any]:
            await asyncio.sleep(DELAY_S)
            return {"documents": [Document(id=id_, content=id_, score=1.0) for id_ in ids(self.number)]}

    pipeline = Pipeline()
    pipeline.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=LIMIT))
    for number in range(SOURCES):
        pipeline.add_component(f"source{number}", Source(number))
        pipeline.connect(f"source{number}.documents", "joiner.documents")
    data = {f"source{number}": {"query": "query"} for number in range(SOURCES)}
    return lambda: pipeline.run_async(data, concurrency_limit=SOURCES)


def langchain() -> Search:
    """An ``EnsembleRetriever``."""
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Source(BaseRetriever):
        number: int

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            raise NotImplementedError

        async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            await asyncio.sleep(DELAY_S)
            return [Document(id=id_, page_content=id_) for id_ in ids(self.number)]

    ensemble = EnsembleRetriever(
        retrievers=[Source(number=number) for number in range(SOURCES)], weights=[1 / SOURCES] * SOURCES
    )
    return lambda: ensemble.ainvoke("query")


def llama_index() -> Search:
    """A ``QueryFusionRetriever``."""
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Source(BaseRetriever):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            raise NotImplementedError

        async def _aretrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            await asyncio.sleep(DELAY_S)
            return [NodeWithScore(node=TextNode(id_=id_, text=id_), score=1.0) for id_ in ids(self.number)]

    fusion = QueryFusionRetriever(
        [Source(number) for number in range(SOURCES)],
        llm=MockLLM(),
        mode="reciprocal_rerank",
        similarity_top_k=LIMIT,
        num_queries=1,
        use_async=True,
    )
    return lambda: fusion.aretrieve("query")


async def measure(search: Search, concurrency: int, seconds: float) -> tuple[float, float]:
    """µs of CPU per query, and queries per second, of clients that search again as soon as they have a response."""
    finished = 0

    async def client(until: float) -> None:
        nonlocal finished
        while perf_counter() < until:
            await search()
            finished += 1

    await client(perf_counter() + seconds / 10)
    finished, start, cpu = 0, perf_counter(), process_time()
    await asyncio.gather(*(client(start + seconds) for _ in range(concurrency)))
    return (process_time() - cpu) / finished * 1e6, finished / (perf_counter() - start)


PEERS = {"bare": bare, "haystack": haystack, "langchain": langchain, "llama_index": llama_index}

if __name__ == "__main__":
    name, at_a_time, duration_s = sys.argv[1:]
    print(*asyncio.run(measure(PEERS[name](), int(at_a_time), float(duration_s))))
