from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters import Link, Query, Scope, Sensitivity
from adapters.embedded import Library
from adapters.filter import access, normal
from adapters.graph.embedded import EmbeddedGraph
from adapters.graph.part import GraphPart
from tests.conftest import SCOPE, entry

pytestmark = pytest.mark.anyio


async def found(
    library: Library, text: str, clearance: Sensitivity = "normal", scope: Scope = SCOPE
) -> tuple[str, ...]:
    allowed = normal(access(scope, clearance))
    query = Query(text, 10, scope, allowed, allowed)
    return (await EmbeddedGraph(library, GraphPart()).search(query)).ids


async def test_a_title_leads_to_its_document_and_then_to_what_is_linked(open_library: Callable[[], Library]) -> None:
    library = open_library()
    await library.write(
        [
            entry("nolan", title="Christopher Nolan", links=(Link("prestige", "directed"),)),
            entry("prestige", title="The Prestige (film)", links=(Link("bale", "stars"),)),
            entry("bale", title="Christian Bale"),
            entry("other", title="Somebody Else"),
        ],
        (),
    )
    assert await found(library, "who is Christopher Nolan?") == ("nolan", "prestige")
    assert set(await found(library, "cast of the prestige")) == {"prestige", "nolan", "bale"}


async def test_two_documents_that_mention_one_name_are_neighbours(open_library: Callable[[], Library]) -> None:
    library = open_library()
    await library.write([entry("a", entities=("Ada Lovelace",)), entry("b", entities=("ADA LOVELACE",))], ())
    await library.write([entry("c", entities=("Ada  Lovelace's",))], ())
    assert set(await found(library, "ada lovelace")) == {"a", "b", "c"}


async def test_a_link_to_what_comes_later_is_made_when_it_comes(open_library: Callable[[], Library]) -> None:
    library = open_library()
    await library.write([entry("a", title="First Thing", links=(Link("b", "next"),))], ())
    assert await found(library, "first thing") == ("a",)
    await library.write([entry("b", title="Second Thing")], ())
    assert await found(library, "first thing") == ("a", "b")
    await library.write([], [("default", "default", "b")])
    assert await found(library, "first thing") == ("a",)


async def test_a_stronger_link_carries_more(open_library: Callable[[], Library]) -> None:
    library = open_library()
    links = (Link("weak", "x", 0.5), Link("strong", "x", 5.0))
    await library.write([entry("a", title="The Start", links=links), entry("weak"), entry("strong")], ())
    assert await found(library, "the start") == ("a", "strong", "weak")


async def test_a_walk_neither_crosses_a_scope_nor_passes_what_the_caller_may_not_see(
    open_library: Callable[[], Library],
) -> None:
    library = open_library()
    other = Scope("other")
    await library.write(
        [
            entry("a", title="Shared Name"),
            entry("secret", title="Shared Name", sensitivity="restricted", links=(Link("beyond", "x"),)),
            entry("beyond"),
            entry("theirs", title="Shared Name", scope=other, links=(Link("a", "x"), Link("beyond", "x"))),
        ],
        (),
    )
    assert await found(library, "shared name") == ("a",)
    assert set(await found(library, "shared name", "restricted")) == {"a", "secret", "beyond"}
    assert await found(library, "shared name", scope=other) == ("theirs",)


async def test_what_one_tenant_writes_moves_nothing_of_another_s(open_library: Callable[[], Library]) -> None:
    """A single word is looked up as a name while it is rare: rare among one's own documents."""
    library = open_library()
    await library.write([entry("a", "about Zanzibar", title="Zanzibar")], ())
    assert await found(library, "zanzibar") == ("a",)
    flood = [entry(f"{n}", "Zanzibar again", title="Zanzibar", scope=Scope("other")) for n in range(100)]
    await library.write(flood, ())
    assert await found(library, "zanzibar") == ("a",)


async def test_a_query_that_names_nothing_finds_nothing(open_library: Callable[[], Library]) -> None:
    library = open_library()
    await library.write([entry("a", title="Some Title")], ())
    assert await found(library, "what is it") == ()
