"""Query expansion: for sources that use synonyms alone, and never at the cost of the response."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from adapters import Unavailable
from adapters.engine import EmbeddedIndex
from adapters.keyword.expand import Synonyms
from adapters.ports import Expander
from tests.conftest import vector_record
from tests.orchestrator.services import empty_index, graph_source, search, search_service

pytestmark = pytest.mark.anyio


@pytest.fixture
async def index(tmp_path: Path) -> EmbeddedIndex:
    index = empty_index(tmp_path)
    await index.write(
        [vector_record("car", "A red car", seed=3), vector_record("auto", "An automobile in red", seed=4)], ()
    )
    return index


SYNONYMS = Synonyms([("car", ["automobile"])])


async def test_the_keyword_source_finds_documents_with_a_synonym(index: EmbeddedIndex) -> None:
    assert [hit.id for hit in (await search(search_service(index), "car", mode="keyword")).hits] == ["car"]
    service = search_service(index, expander=SYNONYMS)
    response = await search(service, "car", mode="keyword", explain=True)
    assert [hit.id for hit in response.hits] == ["car", "auto"]
    assert response.explain
    assert response.explain.expansions == ("automobile",)
    assert "expand" in response.timings_ms
    quoted = await search(service, '"car"', mode="auto")
    assert [hit.id for hit in quoted.hits] == ["car"]


async def test_the_other_sources_get_the_original_query(index: EmbeddedIndex) -> None:
    graph = graph_source(index)
    await search(search_service(index, expander=SYNONYMS, graph=graph), "car", mode="hybrid")
    assert [(query.text, query.expansions) for query in graph.queries] == [("car", ())]


class FailingExpander:
    async def expand(self, text: str) -> tuple[str, ...]:
        raise Unavailable("no synonyms")


class StalledExpander:
    async def expand(self, text: str) -> tuple[str, ...]:
        await anyio.sleep_forever()
        return ()


@pytest.mark.parametrize(("broken", "reason"), [(FailingExpander(), "no synonyms"), (StalledExpander(), "timed out")])
async def test_if_expansion_fails_the_keyword_source_is_searched_without_it(
    index: EmbeddedIndex, broken: Expander, reason: str
) -> None:
    response = await search(search_service(index, expander=broken), "car", mode="keyword", timeout_ms=400)
    assert [hit.id for hit in response.hits] == ["car"]
    assert [(each.source, each.reason) for each in response.degraded] == [("expansion", reason)]
