"""Other words for a query, through the engine: for keyword alone, and never at the cost of the answer."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from adapters import Unavailable
from adapters.embedded import Library
from adapters.keyword.expand import Synonyms
from tests.conftest import entry
from tests.orchestrator.engines import Recorder, ask, engine, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
async def library(tmp_path: Path) -> Library:
    made = opened(tmp_path)
    await made.write([entry("car", "A red car", seed=3), entry("auto", "An automobile in red", seed=4)], ())
    return made


SYNONYMS = Synonyms([("car", ["automobile"])])


async def test_keyword_finds_what_is_called_otherwise(library: Library) -> None:
    assert [hit.id for hit in (await ask(engine(library), "car", mode="keyword")).hits] == ["car"]
    answer = await ask(engine(library, expander=SYNONYMS), "car", mode="keyword", explain=True)
    assert [hit.id for hit in answer.hits] == ["car", "auto"]
    assert answer.explain
    assert answer.explain.expansions == ("automobile",)
    assert "expand" in answer.timings_ms
    quoted = await ask(engine(library, expander=SYNONYMS), '"car"', mode="auto")
    assert [hit.id for hit in quoted.hits] == ["car"]


async def test_the_other_sources_see_the_original(library: Library) -> None:
    graph = Recorder(library)
    await ask(engine(library, expander=SYNONYMS, graph=graph), "car", mode="hybrid")
    assert [(query.text, query.expansions) for query in graph.asked] == [("car", ())]


class Failing:
    async def expand(self, text: str) -> tuple[str, ...]:
        raise Unavailable("no words")


class Slow:
    async def expand(self, text: str) -> tuple[str, ...]:
        await anyio.sleep_forever()
        return ()


@pytest.mark.parametrize(("broken", "reason"), [(Failing(), "no words"), (Slow(), "timed out")])
async def test_without_them_keyword_is_asked_all_the_same(library: Library, broken: Failing, reason: str) -> None:
    answer = await ask(engine(library, expander=broken), "car", mode="keyword", timeout_ms=400)
    assert [hit.id for hit in answer.hits] == ["car"]
    assert [(each.source, each.reason) for each in answer.degraded] == [("expansion", reason)]
