"""One suite over every source: the same documents in, the same behaviour out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings

from adapters import Document, Entry, Query, Record, Retriever, Scope
from adapters.document import fields
from adapters.embedded import Library
from adapters.filter import And, Eq, Filter, access, matches, normal
from adapters.graph.embedded import EmbeddedGraph
from adapters.graph.part import GraphPart
from adapters.keyword.embedded import EmbeddedKeyword, KeywordPart
from adapters.vector.embedded import EmbeddedVector, VectorPart
from tests.adapters.filters import documents, filters
from tests.conftest import SCOPE, entry, unit

pytestmark = pytest.mark.anyio

SOURCES = {
    "vector": lambda library: EmbeddedVector(library, VectorPart()),
    "graph": lambda library: EmbeddedGraph(library, GraphPart()),
    "keyword": lambda library: EmbeddedKeyword(library, KeywordPart()),
}


@pytest.fixture(params=sorted(SOURCES))
def source(request: pytest.FixtureRequest) -> Callable[[Library], Retriever]:
    return SOURCES[request.param]


def query(text: str = "Alpha Centauri", wanted: Filter | None = None, scope: Scope = SCOPE, depth: int = 10) -> Query:
    allowed = normal(access(scope, "normal"))
    both = normal(And((allowed, wanted))) if wanted else allowed
    return Query(text, depth, scope, allowed, both, unit(1))


def star(id_: str, **fields: object) -> Entry:
    """A document that every source finds: by its vector, its words and the name in it."""
    return entry(id_, "We saw Alpha Centauri tonight", seed=1, **fields)


async def found(retriever: Retriever, asked: Query | None = None) -> list[str]:
    return sorted((await retriever.search(asked or query())).ids)


async def test_nothing_is_found_where_nothing_is(open_library, source) -> None:
    assert await found(source(open_library())) == []


async def test_what_is_added_is_found_and_survives_a_restart(open_library, source) -> None:
    library = open_library()
    retriever = source(library)
    await library.write([star("a"), star("b")], ())
    assert await found(retriever) == ["a", "b"]
    assert await found(source(open_library())) == ["a", "b"]


async def test_a_reader_in_another_process_follows(open_library, source) -> None:
    writer, reader = open_library(), open_library()
    retriever = source(reader)
    await writer.write([star("a")], ())
    assert await found(retriever) == []
    assert reader.refresh()
    assert await found(retriever) == ["a"]
    assert not reader.refresh()


async def test_a_replacement_leaves_nothing_of_what_was(open_library, source) -> None:
    library = open_library()
    retriever = source(library)
    await library.write([star("a"), star("b")], ())
    await library.write([entry("a", "now about Proxima and nothing else", seed=2, tags=("new",))], ())
    assert await found(retriever, query(wanted=Eq("tags", "new"))) in (["a"], [])
    old = await retriever.search(query())
    assert old.ids[0] == "b"
    records = await library.fetch(SCOPE, ["a"])
    assert records["a"].document.text == "now about Proxima and nothing else"


async def test_what_is_deleted_is_gone(open_library, source) -> None:
    library = open_library()
    retriever = source(library)
    await library.write([star("a"), star("b")], ())
    await library.write([], [("default", "default", "a"), ("default", "default", "never there")])
    assert await found(retriever) == ["b"]
    assert await found(source(open_library())) == ["b"]
    await library.write([], [("default", "default", "b")])
    assert await found(retriever) == []
    await library.write([star("a")], ())
    assert await found(retriever) == ["a"]


async def test_the_last_of_one_id_in_one_write_stands(open_library, source) -> None:
    library = open_library()
    await library.write([star("a", tags=("first",)), star("a", tags=("last",))], ())
    assert await found(source(library)) == ["a"]
    assert await found(source(library), query(wanted=Eq("tags", "first"))) == []


async def test_no_scope_sees_into_another(open_library, source) -> None:
    library = open_library()
    retriever = source(library)
    other, third = Scope("other", "default"), Scope("default", "other")
    await library.write([star("a"), star("a", scope=other), star("b", scope=third)], ())
    assert await found(retriever) == ["a"]
    assert await found(retriever, query(scope=other)) == ["a"]
    assert await found(retriever, query(scope=third)) == ["b"]
    await library.write([], [("other", "default", "a")])
    assert await found(retriever) == ["a"]
    assert await found(retriever, query(scope=other)) == []


async def test_what_is_above_the_clearance_is_not_found(open_library, source) -> None:
    library = open_library()
    await library.write([star("a"), star("b", sensitivity="sensitive"), star("c", sensitivity="public")], ())
    assert await found(source(library)) == ["a", "c"]


async def test_a_filter_holds_inside_the_search_and_not_after_it(open_library, source) -> None:
    """Two wanted documents behind fifty better ones: cutting at depth first would lose them."""
    library = open_library()
    better = [star(f"better{n:02}") for n in range(50)]
    wanted = [star("wanted1", tags=("w",)), star("wanted2", tags=("w",))]
    await library.write(better + wanted, ())
    assert await found(source(library), query(wanted=Eq("tags", "w"), depth=3)) == ["wanted1", "wanted2"]


async def test_depth_bounds_the_answer_and_ranks_fall(open_library, source) -> None:
    library = open_library()
    await library.write([star(f"{n}") for n in range(20)], ())
    ranking = await source(library).search(query(depth=7))
    assert len(ranking) == 7
    assert list(ranking.scores) == sorted(ranking.scores, reverse=True)


async def test_the_same_question_has_the_same_answer(open_library, source) -> None:
    library = open_library()
    await library.write([star(f"{n}") for n in range(20)], ())
    first = await source(library).search(query())
    assert all([await source(library).search(query()) == first for _ in range(20)])
    assert await source(open_library()).search(query()) == first


@pytest.mark.parametrize("id_", ["é", "日本語", "a\0b", "a/b c", "x" * 512, '"quoted"', "🦊"])
async def test_any_id_goes_in_and_comes_out(open_library, source, id_) -> None:
    library = open_library()
    await library.write([star(id_)], ())
    assert await found(source(library)) == [id_]
    assert (await library.fetch(SCOPE, [id_]))[id_].document.id == id_


HOSTILE = [
    '"', "'", "\\", "a AND b", "a OR", "title:*", "(", ")", "[* TO *]", "+a -b", "a~2", "*", "?", "\0", "\n\n",
    "'; DROP TABLE documents; --", "MATCH (n) DETACH DELETE n", "{{7*7}}", "${jndi:ldap://x}", '"unclosed', '""',
    "a" * 4_096, "word " * 800, "\u202e\u200b", "🦊" * 100, "NOT", "/regex/", "<script>", "%00", "\ufeff",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_text_is_syntax(open_library, source, text) -> None:
    library = open_library()
    await library.write([star("a")], ())
    ranking = await source(library).search(query(text))
    assert set(ranking.ids) <= {"a"}


@settings(max_examples=60)
@given(held=documents(), wanted=filters)
async def test_every_source_filters_alike(tmp_path_factory, held: list[Document], wanted: Filter) -> None:
    folder = tmp_path_factory.mktemp("filters")
    library = Library(folder, (VectorPart(), KeywordPart(), GraphPart()), "t")
    entries = [Entry(Record("default", "default", document, ("Alpha Centauri",)), unit(1)) for document in held]
    await library.write(entries, ())
    for retriever in (make(library) for make in SOURCES.values()):
        asked = query("alpha centauri", wanted=wanted)
        expected = sorted(d.id for d in held if matches(wanted, fields(Record("t", "e", d))))
        assert await found(retriever, asked) == expected, type(retriever)
