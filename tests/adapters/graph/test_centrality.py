from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adapters import Link, Unavailable
from adapters.embedded import Library
from adapters.graph.centrality import CentralityFile, compute
from adapters.graph.embedded import EmbeddedGraph
from adapters.graph.part import GraphPart
from tests.conftest import SCOPE, entry

pytestmark = pytest.mark.anyio


@pytest.fixture
def star(open_library: Callable[[], Library]) -> Library:
    """A hub with five leaves, and one document apart."""
    library = open_library()
    leaves = [entry(f"leaf{n}", links=(Link("hub", "x"),)) for n in range(5)]
    library.write_now([entry("apart"), *leaves, entry("hub")])
    return library


def computed(library: Library, path: Path, name: str = "pagerank") -> CentralityFile:
    now = library.current()
    made = CentralityFile(path, name)  # type: ignore[arg-type]
    made.compute(now.index(GraphPart()), now.catalog, now.manifest.version)
    return made


@pytest.mark.parametrize("name", ["pagerank", "degree", "betweenness", "harmonic"])
async def test_the_hub_is_the_most_central_by_every_measure(star: Library, tmp_path: Path, name: str) -> None:
    graph = EmbeddedGraph(star, GraphPart(), computed(star, tmp_path / "c", name))
    found = await graph.centralities(SCOPE, ["hub", "leaf0", "apart", "unknown"])
    assert found["hub"] == 1.0
    assert 1.0 > found["leaf0"] >= found["apart"] >= 0.0
    assert "unknown" not in found


def test_pagerank_by_hand(star: Library) -> None:
    """A star of 6: the leaves have (1-.85)/7 + .85·hub/5 each, up to what the document apart gives to all alike."""
    values = compute(star.current().index(GraphPart()), "pagerank")
    apart, leaf, hub = values[0], values[1], values[6]
    assert hub == 1.0
    assert leaf == pytest.approx(apart + 0.85 / 5, abs=1e-3)


async def test_documents_that_came_since_have_none(star: Library, tmp_path: Path) -> None:
    central = computed(star, tmp_path / "c")
    star.write_now([entry("late", links=(Link("hub", "x"),))])
    found = await EmbeddedGraph(star, GraphPart(), central).centralities(SCOPE, ["late", "hub"])
    assert found == {"hub": 1.0}
    assert central.generation == 1


async def test_they_are_kept_and_followed(star: Library, tmp_path: Path) -> None:
    follower = CentralityFile(tmp_path / "c", "pagerank")
    assert follower.of(6) is None
    computed(star, tmp_path / "c")
    follower.refresh()
    assert follower.of(6) == 1.0
    assert CentralityFile(tmp_path / "c", "degree").of(6) is None


async def test_none_computes_nothing(star: Library, tmp_path: Path) -> None:
    assert (
        await EmbeddedGraph(star, GraphPart(), computed(star, tmp_path / "c", "none")).centralities(SCOPE, ["hub"])
        == {}
    )
    assert not (tmp_path / "c").exists()
    assert await EmbeddedGraph(star, GraphPart()).centralities(SCOPE, ["hub"]) == {}


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"?")
    with pytest.raises(Unavailable, match="is damaged, remove it"):
        CentralityFile(tmp_path / "c", "pagerank")
