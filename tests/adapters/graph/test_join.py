"""What the graph makes of links and short documents: the same on an embedded index and on a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from adapters import Link, Scope
from adapters.engine import EmbeddedIndex
from adapters.graph.component import GraphComponent
from adapters.graph.embedded import EmbeddedGraph
from adapters.graph.link_types import TypeStrengths
from adapters.graph.memgraph import MemgraphGraph
from adapters.ports import VectorRecord
from adapters.ports.graph import LinkStrength
from adapters.ports.retriever import SourceQuery
from fusion.columns import Documents
from tests.adapters.source_fixtures import source_query, source_under_test
from tests.conftest import SCOPE, vector_record

pytestmark = pytest.mark.anyio

TEXT = "one two three four five six seven eight nine ten"


def from_seed(*ids: str) -> SourceQuery:
    return msgspec.structs.replace(source_query("?"), seeds=Documents.of_ids(ids), depth=100)


def book(type_: str, pages: int = 30) -> list[VectorRecord]:
    """Three chapters of a book with ten pages each; a page leads to its chapter, a chapter to the book."""
    chapters = [str(number) for number in range(3)]
    return [
        vector_record("book", TEXT, entities=()),
        *(vector_record(f"c{chapter}", TEXT, entities=(), links=(Link("book", type_),)) for chapter in chapters),
        *(vector_record(f"p{page}", TEXT, entities=(), links=(Link(f"c{page % 3}", type_),)) for page in range(pages)),
    ]


async def embedded(folder: Path, records: Sequence[VectorRecord], chosen: TypeStrengths | None = None) -> EmbeddedGraph:
    component = GraphComponent(chosen)
    index = EmbeddedIndex(folder, [component], "build")
    await index.write(records, ())
    return EmbeddedGraph(index, component)


@pytest.mark.parametrize("type_", ["about", "part_of"])
async def test_a_walk_goes_down_a_hierarchy_and_not_up(type_: str, tmp_path: Path) -> None:
    graph = await embedded(tmp_path, book(type_))
    assert (await graph.search(from_seed("p1"))).ids == ("p1",)
    assert set((await graph.search(from_seed("c1"))).ids) == {"c1", *(f"p{page}" for page in range(1, 30, 3))}
    (strength,) = await graph.link_strengths(SCOPE)
    assert (strength.type, strength.forward, strength.backward) == (type_, 0.0, 1.0)


async def test_the_smallest_weight_is_followed(tmp_path: Path) -> None:
    """The weight is 0 in single precision. A warning of numpy would fail the test."""
    records = [
        vector_record("a", TEXT, entities=(), links=(Link("b", "about", weight=5e-324),)),
        vector_record("b", TEXT, entities=()),
    ]
    graph = await embedded(tmp_path, records)
    assert (await graph.search(from_seed("a"))).ids == ("a", "b")


async def test_a_strength_that_is_set_decides(tmp_path: Path) -> None:
    graph = await embedded(tmp_path, book("about"), {"about": (1.0, 0.0)})
    assert (await graph.search(from_seed("p1"))).ids == ("p1", "c1", "book")
    assert await graph.link_strengths(SCOPE) == [LinkStrength("about", 1.0, 0.0, "as set")]


async def test_what_a_walk_does_not_follow_goes_back_to_its_seeds(tmp_path: Path) -> None:
    graph = await embedded(tmp_path, book("about"))
    ranking = await graph.search(from_seed("p1"))
    assert ranking.scores.tolist() == pytest.approx([1.0])


async def test_the_links_of_one_tenant_do_not_change_those_of_another(tmp_path: Path) -> None:
    """Alone, one link is no hierarchy; together with the other tenant's it would be one."""
    other = Scope("other", SCOPE.environment)
    few = [
        vector_record("a", TEXT, entities=(), links=(Link("b", "about"),), scope=other),
        vector_record("b", TEXT, entities=(), scope=other),
    ]
    graph = await embedded(tmp_path, [*book("about"), *few])
    assert [each.reason for each in await graph.link_strengths(other)] == ["no hierarchy"]


async def test_a_short_document_gets_a_part_of_what_a_walk_brings(tmp_path: Path) -> None:
    """The average is 60 words, so that 25 are the full length."""
    long, short = "word " * 100, "word " * 5
    records = [
        vector_record("seed", long, entities=(), links=(Link("long", "see"), Link("short", "see"))),
        vector_record("long", long, entities=()),
        vector_record("short", short, entities=()),
    ]
    scores = {hit.id: hit.score for hit in await (await embedded(tmp_path, records)).search(from_seed("seed"))}
    assert scores["short"] / scores["long"] == pytest.approx(5 / 25, rel=0.1)


async def test_other_strengths_take_effect_when_the_index_is_built_again(tmp_path: Path) -> None:
    await embedded(tmp_path, book("about"))
    component = GraphComponent({"about": (1.0, 1.0)})
    index = EmbeddedIndex(tmp_path, [component], "build")
    graph = EmbeddedGraph(index, component)
    assert component.is_outdated(index.current().component(component))
    assert (await graph.search(from_seed("p1"))).ids == ("p1",)
    index.rebuild()
    assert not component.is_outdated(index.current().component(component))
    assert len((await graph.search(from_seed("p1"))).ids) > 2


@pytest.mark.server
@pytest.mark.parametrize("type_", ["about", "part_of", "see"])
async def test_a_server_finds_the_same_hierarchies_and_follows_them_alike(
    type_: str, tmp_path: Path, server_url: Callable[[str], str]
) -> None:
    """``see`` leads to the next page, too, so that it is no hierarchy."""
    records = book(type_)
    if type_ == "see":
        following = [(Link(f"c{page % 3}", "see"), Link(f"p{page + 1}", "see")) for page in range(29)]
        records += [vector_record(f"p{page}", TEXT, entities=(), links=links) for page, links in enumerate(following)]
    found = []
    for name in ("embedded graph", "memgraph"):
        async with source_under_test(name, tmp_path, server_url) as subject:
            await subject.write(records)
            graph: EmbeddedGraph | MemgraphGraph = subject.source  # type: ignore[assignment]
            if isinstance(graph, MemgraphGraph):
                await graph.update_strengths()
            rankings = [await graph.search(from_seed(seed)) for seed in ("p1", "c1", "book")]
            found.append((await graph.link_strengths(SCOPE), [set(ranking.ids) for ranking in rankings]))
    (strengths, ids), (server_strengths, server_ids) = found
    assert server_strengths == strengths
    assert [("c1" in ids[0]), ("c1" in server_ids[0])] == [type_ == "see"] * 2
    assert server_ids == ids or type_ == "see"  # otherwise the walk on the server goes one step farther


@pytest.mark.server
async def test_a_server_gives_short_documents_their_part_also_after_they_were_replaced(
    tmp_path: Path, server_url: Callable[[str], str]
) -> None:
    long, short = "word " * 100, "word " * 5
    links = (Link("long", "see"), Link("short", "see"))
    parts = []
    for name in ("embedded graph", "memgraph"):
        async with source_under_test(name, tmp_path, server_url) as subject:
            await subject.write([vector_record(id_, long * 3, entities=()) for id_ in ("short", "long")])
            await subject.write(
                [
                    vector_record("seed", long, entities=(), links=links),
                    vector_record("long", long, entities=()),
                    vector_record("short", short, entities=()),
                ]
            )
            scores = {hit.id: hit.score for hit in await subject.source.search(from_seed("seed"))}
            parts.append(scores["short"] / scores["long"])
    assert parts == pytest.approx([5 / 25, 5 / 25], rel=1e-3)
