"""How much text a response has at most, and that it says what is cut."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adapters.engine import EmbeddedIndex
from orchestrator.results.text_limit import MAX_TEXT_CHARS
from tests.conftest import vector_record
from tests.orchestrator.services import empty_index, search, search_service

pytestmark = pytest.mark.anyio

CHARS = 250_000


@pytest.fixture
async def index(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedIndex:
    """Sixty long chunks of one document."""
    index = empty_index(tmp_path_factory.mktemp("index"))
    text = "star " * (CHARS // 5)
    chunks = [vector_record(f"c{n}", text, seed=n, parent_id="p", chunk_index=n) for n in range(60)]
    await index.write(chunks, ())
    return index


async def test_long_texts_of_many_hits_and_neighbours_are_cut(index: EmbeddedIndex) -> None:
    response = await search(
        search_service(index), "star", mode="keyword", collapse="none", limit=50, neighbors=10, timeout_ms=60_000
    )
    assert len(response.hits) == 50
    assert sum(len(hit.text) for hit in response.hits) == MAX_TEXT_CHARS
    for hit in response.hits:
        assert 0 <= hit.span[0] <= hit.span[1] <= len(hit.text)
    (cut,) = [each.reason for each in response.degraded if each.source == "response"]
    assert cut.endswith(f"hits are cut: {MAX_TEXT_CHARS} characters are allowed in a response")


LONG = "x" * 1_000_000


@pytest.mark.parametrize(
    "fields", [{"title": LONG}, {"metadata": {"heading_path": LONG}}, {"metadata": {"list": [LONG]}}], ids=list
)
async def test_titles_and_metadata_count_too(
    tmp_path: Path, fields: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = empty_index(tmp_path)
    await index.write([vector_record(f"c{n}", "star", seed=n, **fields) for n in range(30)], ())
    response = await search(search_service(index), "star", mode="vector", limit=30, timeout_ms=60_000)
    assert len(response.hits) == 30
    assert len(msgspec.json.encode(response)) < MAX_TEXT_CHARS + 100_000
    assert any(len(msgspec.json.encode(hit)) > len(LONG) for hit in response.hits)
    assert [each.source for each in response.degraded] == ["response"]


async def test_texts_that_are_short_enough_are_whole(index: EmbeddedIndex) -> None:
    response = await search(search_service(index), "star", mode="keyword", collapse="none", limit=10, neighbors=1)
    assert response.degraded == ()
    assert min(len(hit.text) for hit in response.hits) >= 2 * CHARS
