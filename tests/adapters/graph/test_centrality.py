from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from adapters import Link
from adapters.engine import EmbeddedIndex
from adapters.graph.centrality import CentralityFile
from adapters.graph.centrality_measures import compute
from adapters.graph.component import GraphComponent
from adapters.graph.embedded import EmbeddedGraph
from tests.conftest import SCOPE, vector_record

pytestmark = pytest.mark.anyio


@pytest.fixture
def star(open_index: Callable[[], EmbeddedIndex]) -> EmbeddedIndex:
    """A hub with five leaves, and one isolated document."""
    index = open_index()
    leaves = [vector_record(f"leaf{n}", links=(Link("hub", "x"),)) for n in range(5)]
    index.write_blocking([vector_record("isolated"), *leaves, vector_record("hub")])
    return index


def computed(index: EmbeddedIndex, path: Path, name: str = "pagerank") -> CentralityFile:
    view = index.current()
    file = CentralityFile(path, name)  # type: ignore[arg-type]
    file.compute(view.component(GraphComponent()), view.segments, view.manifest.generation)
    return file


@pytest.mark.parametrize("name", ["pagerank", "degree", "betweenness", "harmonic"])
async def test_the_hub_is_the_most_central_by_every_measure(star: EmbeddedIndex, tmp_path: Path, name: str) -> None:
    graph = EmbeddedGraph(star, GraphComponent(), computed(star, tmp_path / "c", name))
    found = await graph.centralities(SCOPE, ["hub", "leaf0", "isolated", "unknown"])
    assert found["hub"] == 1.0
    assert 1.0 > found["leaf0"] >= found["isolated"] >= 0.0
    assert "unknown" not in found


def test_pagerank_by_hand(star: EmbeddedIndex) -> None:
    """A star of 6: the leaves have (1-.85)/7 + .85·hub/5 each, plus what the isolated document gives to all nodes."""
    adjacency = star.current().component(GraphComponent()).by_level["normal"].adjacency
    values = compute(adjacency, np.arange(7), np.arange(7, len(adjacency)), "pagerank")
    isolated, leaf, hub = values[0], values[1], values[6]
    assert hub == 1.0
    assert leaf == pytest.approx(isolated + 0.85 / 5, abs=1e-3)


async def test_documents_written_later_have_no_centrality(star: EmbeddedIndex, tmp_path: Path) -> None:
    centrality = computed(star, tmp_path / "c")
    star.write_blocking([vector_record("late", links=(Link("hub", "x"),))])
    found = await EmbeddedGraph(star, GraphComponent(), centrality).centralities(SCOPE, ["late", "hub"])
    assert found == {"hub": 1.0}
    assert centrality.generation == 1


async def test_centralities_are_stored_and_reread(star: EmbeddedIndex, tmp_path: Path) -> None:
    follower = CentralityFile(tmp_path / "c", "pagerank")
    assert follower.of(6, "normal") is None
    computed(star, tmp_path / "c")
    follower.refresh()
    assert (follower.of(6, "normal"), follower.generation) == (1.0, 1)
    (tmp_path / "c").unlink()
    follower.refresh()
    assert (follower.of(6, "normal"), follower.generation) == (1.0, 1), (
        "a deleted file must not change the centralities"
    )
    computed(star, tmp_path / "c")
    assert CentralityFile(tmp_path / "c", "degree").of(6, "normal") is None


async def test_the_measure_none_computes_nothing(star: EmbeddedIndex, tmp_path: Path) -> None:
    assert (
        await EmbeddedGraph(star, GraphComponent(), computed(star, tmp_path / "c", "none")).centralities(SCOPE, ["hub"])
        == {}
    )
    assert not (tmp_path / "c").exists()
    assert await EmbeddedGraph(star, GraphComponent()).centralities(SCOPE, ["hub"]) == {}


def test_damaged_centralities_count_as_none_and_are_logged_once(
    star: EmbeddedIndex, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "c").write_bytes(b"?")
    file = CentralityFile(tmp_path / "c", "pagerank")
    file.refresh()
    assert (file.of(6, "normal"), file.generation) == (None, 0)
    assert [str(tmp_path / "c") in each.message for each in caplog.records] == [True]
    assert computed(star, tmp_path / "c").of(6, "normal") == 1.0
