from __future__ import annotations

from collections.abc import Callable
from time import process_time

import numpy as np
import pytest

from adapters import Link, Scope, Sensitivity, Viewer
from adapters.engine import EmbeddedIndex
from adapters.graph.component import GraphComponent
from adapters.graph.embedded import EmbeddedGraph
from adapters.model.filter import access, normal
from adapters.ports import SourceQuery
from fusion.columns import Documents
from tests.conftest import SCOPE, vector_record

pytestmark = pytest.mark.anyio


async def searched(
    index: EmbeddedIndex, text: str, clearance: Sensitivity = "normal", scope: Scope = SCOPE
) -> tuple[str, ...]:
    allowed = normal(access(scope, Viewer(clearance)))
    query = SourceQuery(text, 10, scope, allowed, allowed)
    return (await EmbeddedGraph(index, GraphComponent()).search(query)).ids


async def test_a_title_leads_to_its_document_and_then_to_linked_documents(
    open_index: Callable[[], EmbeddedIndex],
) -> None:
    index = open_index()
    await index.write(
        [
            vector_record("nolan", title="Christopher Nolan", links=(Link("prestige", "directed"),)),
            vector_record("prestige", title="The Prestige (film)", links=(Link("bale", "stars"),)),
            vector_record("bale", title="Christian Bale"),
            vector_record("other", title="Another Person"),
        ],
        (),
    )
    assert await searched(index, "who is Christopher Nolan?") == ("nolan", "prestige")
    assert set(await searched(index, "cast of the prestige")) == {"prestige", "nolan", "bale"}


async def test_two_documents_that_mention_one_name_are_neighbours(open_index: Callable[[], EmbeddedIndex]) -> None:
    index = open_index()
    await index.write(
        [vector_record("a", entities=("Ada Lovelace",)), vector_record("b", entities=("ADA LOVELACE",))], ()
    )
    await index.write([vector_record("c", entities=("Ada  Lovelace's",))], ())
    assert set(await searched(index, "ada lovelace")) == {"a", "b", "c"}


async def test_a_link_is_resolved_when_its_target_is_added(open_index: Callable[[], EmbeddedIndex]) -> None:
    index = open_index()
    await index.write([vector_record("a", title="First Thing", links=(Link("b", "next"),))], ())
    assert await searched(index, "first thing") == ("a",)
    await index.write([vector_record("b", title="Second Thing")], ())
    assert await searched(index, "first thing") == ("a", "b")
    await index.write([], [("default", "default", "b")])
    assert await searched(index, "first thing") == ("a",)


async def test_a_stronger_link_carries_more(open_index: Callable[[], EmbeddedIndex]) -> None:
    index = open_index()
    links = (Link("weak", "x", 0.5), Link("strong", "x", 5.0))
    await index.write(
        [vector_record("a", title="The Start", links=links), vector_record("weak"), vector_record("strong")], ()
    )
    assert await searched(index, "the start") == ("a", "strong", "weak")


async def test_a_walk_never_leaves_its_scope_or_passes_invisible_documents(
    open_index: Callable[[], EmbeddedIndex],
) -> None:
    index = open_index()
    other = Scope("other")
    await index.write(
        [
            vector_record("a", title="Shared Name"),
            vector_record("secret", title="Shared Name", sensitivity="restricted", links=(Link("beyond", "x"),)),
            vector_record("beyond"),
            vector_record("other", title="Shared Name", scope=other, links=(Link("a", "x"), Link("beyond", "x"))),
        ],
        (),
    )
    assert await searched(index, "shared name") == ("a",)
    assert set(await searched(index, "shared name", "restricted")) == {"a", "secret", "beyond"}
    assert await searched(index, "shared name", scope=other) == ("other",)


async def test_writes_of_one_tenant_do_not_change_results_of_another(open_index: Callable[[], EmbeddedIndex]) -> None:
    """A single word is a name while it is rare, counted in the documents of its own scope."""
    index = open_index()
    await index.write([vector_record("a", "about Zanzibar", title="Zanzibar")], ())
    assert await searched(index, "zanzibar") == ("a",)
    flood = [vector_record(f"{n}", "Zanzibar again", title="Zanzibar", scope=Scope("other")) for n in range(100)]
    await index.write(flood, ())
    assert await searched(index, "zanzibar") == ("a",)


async def test_a_query_without_a_known_name_has_no_results(open_index: Callable[[], EmbeddedIndex]) -> None:
    index = open_index()
    await index.write([vector_record("a", title="Some Title")], ())
    assert await searched(index, "what is it") == ()


def seeded_query(seeds: Documents | None) -> SourceQuery:
    allowed = normal(access(SCOPE, Viewer("normal")))
    return SourceQuery("no known name", 10, SCOPE, allowed, allowed, seeds=seeds)


async def test_seeds_by_position_and_by_id_give_the_same_ranking(open_index: Callable[[], EmbeddedIndex]) -> None:
    """Seeds of the same segment set are positions; all others are looked up by id, and unknown ids are ignored."""
    index = open_index()
    links = (Link("b", "x"), Link("c", "x", 2.0))
    await index.write([vector_record("a", links=links), vector_record("b"), vector_record("c"), vector_record("d")], ())
    await index.write([], [("default", "default", "b")])
    graph = EmbeddedGraph(index, GraphComponent())
    segments = index.current().segments
    positions = [segments.position(("default", "default", id_)) for id_ in ("c", "d")]
    by_position = await graph.search(seeded_query(Documents(np.array(positions), segments)))
    by_id = await graph.search(seeded_query(Documents.of_ids(("c", "missing", "b", "d"))))
    assert list(by_position) == list(by_id)
    assert by_position.ids[0] == "c"
    assert set(by_position.ids) == {"a", "c", "d"}
    assert len(await graph.search(seeded_query(None))) == 0


async def test_the_order_of_the_seeds_decides_their_mass(open_index: Callable[[], EmbeddedIndex]) -> None:
    index = open_index()
    await index.write([vector_record("a"), vector_record("b")], ())
    graph = EmbeddedGraph(index, GraphComponent())
    assert (await graph.search(seeded_query(Documents.of_ids(("a", "b"))))).ids == ("a", "b")
    assert (await graph.search(seeded_query(Documents.of_ids(("b", "a"))))).ids == ("b", "a")


def test_the_cost_of_a_write_does_not_grow_with_the_number_of_tenants(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """CPU of one write to an index of 2,000 documents: of one tenant, or of as many tenants."""
    costs = []
    for tenants in (1, 2_000):
        index = EmbeddedIndex(tmp_path_factory.mktemp("index"), (GraphComponent(),), "test-1")
        scopes = [Scope(f"t{number}", "test") for number in range(tenants)]
        index.write_blocking([vector_record(str(n), scope=scopes[n % tenants]) for n in range(2_000)], ())
        attempts = []
        for attempt in range(3):
            start = process_time()
            index.write_blocking([vector_record(f"new {attempt}", scope=scopes[0])], ())
            attempts.append(process_time() - start)
        costs.append(min(attempts))
    assert costs[1] < 8 * costs[0]


async def test_the_number_of_documents_of_a_tenant_is_that_of_living_ones(
    open_index: Callable[[], EmbeddedIndex],
) -> None:
    index, component, other = open_index(), GraphComponent(), Scope("other", "test")
    await index.write([vector_record(id_) for id_ in "abc"] + [vector_record("a", scope=other)], ())
    await index.write([vector_record("a")], [vector_record("b").record.key])
    scopes = index.current().component(component).by_level["normal"].scopes
    assert {scope: each.documents for scope, each in scopes.items()} == {
        (SCOPE.tenant, SCOPE.environment): 2,
        (other.tenant, other.environment): 1,
    }


async def test_a_graph_is_built_again_after_many_deletes_only(open_index: Callable[[], EmbeddedIndex]) -> None:
    """One delete would otherwise cost as much as joining all documents. Until then nothing leads to deleted ones."""
    index, component = open_index(), GraphComponent()
    names = {"entities": ("Ada Lovelace",)}
    await index.write([vector_record("gone", **names, title="Lost Thing", links=(Link("0", "x"),))], ())
    await index.write([vector_record(str(number), **names) for number in range(32)], ())
    built = index.current().component(component).by_level["normal"].commit
    await index.write([], [vector_record("gone").record.key])
    await index.write([], [vector_record("31").record.key])
    for opened in (index, open_index()):
        assert opened.current().component(component).by_level["normal"].commit == built
        assert opened.documents_by_component()["graph"] == 31
        assert await searched(opened, "lost thing") == ()
        ids = set(await searched(opened, "ada lovelace"))
        assert ids <= {str(number) for number in range(31)}
        assert len(ids) == 10
    await index.write([], [vector_record("30").record.key])
    assert index.current().component(component).by_level["normal"].commit != built
    built = index.current().component(component).by_level["normal"].commit
    await index.write([vector_record("30")], ())
    assert index.current().component(component).by_level["normal"].commit != built
    assert index.documents_by_component()["graph"] == 31


async def test_a_graph_is_built_again_when_a_delete_merges_segments(open_index: Callable[[], EmbeddedIndex]) -> None:
    index = open_index()
    await index.write([vector_record(str(number), title=f"Thing {number}") for number in range(64)], ())
    await index.write([vector_record("new", title="New Thing")], ())
    await index.write([], [vector_record("0").record.key])
    await index.write([], [vector_record("new").record.key])
    assert await searched(index, "thing 7") == ("7",)
    assert await searched(index, "new thing") == ()
    assert index.documents_by_component()["graph"] == 63
