"""One suite over every source: the same documents in, the same behaviour out."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings

from adapters import Document, Entry, Link, Query, Record, Retriever, Scope
from adapters.document import fields
from adapters.filter import And, Eq, Filter, access, matches, normal
from fusion import Facts
from tests.adapters.filters import documents, filters
from tests.adapters.stands import EMBEDDED, SERVED, Stand, Url, standing
from tests.conftest import SCOPE, entry, unit

pytestmark = pytest.mark.anyio

QDRANT_LOCAL = pytest.param(
    "qdrant local", marks=pytest.mark.filterwarnings("ignore:(Payload indexes|Local mode):UserWarning")
)
STANDS = [*EMBEDDED, QDRANT_LOCAL, *(pytest.param(name, marks=pytest.mark.server) for name in SERVED)]
GIVERS = [QDRANT_LOCAL, *(pytest.param(name, marks=pytest.mark.server) for name in ("qdrant", "opensearch"))]


@pytest.fixture(params=STANDS)
async def stand(request: pytest.FixtureRequest, tmp_path: Path, server_url: Url) -> AsyncIterator[Stand]:
    async with standing(request.param, tmp_path, server_url) as made:
        yield made


def query(text: str = "Alpha Centauri", wanted: Filter | None = None, scope: Scope = SCOPE, depth: int = 10) -> Query:
    allowed = normal(access(scope, "normal"))
    both = normal(And((allowed, wanted))) if wanted else allowed
    return Query(text, depth, scope, allowed, both, unit(1))


def star(id_: str, **fields: object) -> Entry:
    """A document that every source finds: by its vector, its words and the name in it."""
    return entry(id_, "We saw Alpha Centauri tonight", seed=1, **fields)


async def found(retriever: Retriever, asked: Query | None = None) -> list[str]:
    return sorted((await retriever.search(asked or query())).ids)


async def test_nothing_is_found_where_nothing_is(stand: Stand) -> None:
    assert await found(await stand.again()) == []


async def test_what_is_added_is_found_and_survives_a_restart(stand: Stand) -> None:
    await stand.write([star("a"), star("b")])
    assert await found(stand.source) == ["a", "b"]
    assert await found(await stand.again()) == ["a", "b"]


async def test_a_replacement_leaves_nothing_of_what_was(stand: Stand) -> None:
    await stand.write([star("a"), star("b")])
    await stand.write([entry("a", "now about Proxima and nothing else", seed=2, tags=("new",))])
    assert await found(stand.source, query(wanted=Eq("tags", "new"))) in (["a"], [])
    old = await stand.source.search(query())
    assert old.ids[0] == "b"
    if stand.reader:
        records = await stand.reader.fetch(SCOPE, ["a"])
        assert records["a"].document.text == "now about Proxima and nothing else"


async def test_what_is_deleted_is_gone(stand: Stand) -> None:
    await stand.write([star("a"), star("b")])
    await stand.write([], [("default", "default", "a"), ("default", "default", "never there")])
    assert await found(stand.source) == ["b"]
    assert await found(await stand.again()) == ["b"]
    await stand.write([], [("default", "default", "b")])
    assert await found(stand.source) == []
    await stand.write([star("a")])
    assert await found(stand.source) == ["a"]


async def test_the_last_of_one_id_in_one_write_stands(stand: Stand) -> None:
    await stand.write([star("a", tags=("first",)), star("a", tags=("last",))])
    assert await found(stand.source) == ["a"]
    assert await found(stand.source, query(wanted=Eq("tags", "first"))) == []


async def test_no_scope_sees_into_another(stand: Stand) -> None:
    other, third = Scope("other", "default"), Scope("default", "other")
    await stand.write([star("a"), star("a", scope=other), star("b", scope=third)])
    assert await found(stand.source) == ["a"]
    assert await found(stand.source, query(scope=other)) == ["a"]
    assert await found(stand.source, query(scope=third)) == ["b"]
    await stand.write([], [("other", "default", "a")])
    assert await found(stand.source) == ["a"]
    assert await found(stand.source, query(scope=other)) == []


async def test_what_is_above_the_clearance_is_not_found(stand: Stand) -> None:
    await stand.write([star("a"), star("b", sensitivity="sensitive"), star("c", sensitivity="public")])
    assert await found(stand.source) == ["a", "c"]


async def test_a_hit_tells_what_ranking_needs_to_know_of_it(stand: Stand) -> None:
    """Of those that have anything to tell; 2026 begins 1,767,225,600 seconds after 1970."""
    new_year = datetime(2026, 1, 1, tzinfo=UTC)
    await stand.write(
        [star("a", parent_id="p", chunk_index=3), star("b", importance=7, created_at=new_year), star("c")]
    )
    await stand.write([star("d", chunk_index=0)])
    assert (await stand.source.search(query())).facts == {
        "a": Facts(parent="p", chunk=3),
        "b": Facts(created_at=1_767_225_600.0, importance=7.0),
        "d": Facts(chunk=0),
    }
    assert (await (await stand.again()).search(query(depth=50))).facts["a"] == Facts("p", 3)


async def test_other_words_for_the_query_are_for_keyword_alone(stand: Stand) -> None:
    await stand.write(
        [star("a"), entry("b", "the nearest star is Proxima", seed=2), entry("c", "near and far", seed=3)]
    )
    plain = await stand.source.search(query())
    wide = await stand.source.search(replace(query(), expansions=("nearest stars", "nowhere")))
    assert wide.ids == (("a", "b") if wide.source == "keyword" else plain.ids)
    quoted = replace(query('"Alpha Centauri"'), expansions=("nearest stars",))
    assert (await stand.source.search(quoted)).ids == (await stand.source.search(query('"Alpha Centauri"'))).ids


@pytest.mark.parametrize("stand", [*EMBEDDED, pytest.param("opensearch", marks=pytest.mark.server)], indirect=True)
async def test_the_reader_finds_documents_by_a_filter(stand: Stand) -> None:
    assert stand.reader is not None
    await stand.write([star("a", parent_id="p", chunk_index=1), star("b", parent_id="p", chunk_index=2)])
    await stand.write([star("c", parent_id="q", chunk_index=1), star("s", parent_id="p", sensitivity="restricted")])
    of_p = query(wanted=Eq("parent_id", "p")).filter
    assert {record.document.id for record in await stand.reader.find(of_p, 10)} == {"a", "b"}
    assert len(await stand.reader.find(of_p, 1)) == 1
    assert await stand.reader.find(query(wanted=Eq("parent_id", "nobody")).filter, 10) == []


@pytest.mark.parametrize("stand", GIVERS, indirect=True)
async def test_who_can_give_documents_gives_them_as_they_were_written_and_of_their_scope_alone(stand: Stand) -> None:
    source = stand.source
    first, second = star("a", tags=("x",), metadata={"n": [1, "é"], "m": None}), star("b", parent_id="a", chunk_index=2)
    await stand.write([first, second, replace(first, record=msgspec.structs.replace(first.record, tenant="other"))])
    assert await source.fetch(SCOPE, ["a", "b", "nobody"]) == {"a": first.record, "b": second.record}
    assert await source.fetch(Scope("third"), ["a"]) == {}
    await stand.write([], [(SCOPE.tenant, SCOPE.environment, "a")])
    assert await source.fetch(SCOPE, ["a", "b"]) == {"b": second.record}


async def test_a_filter_holds_inside_the_search_and_not_after_it(stand: Stand) -> None:
    """Two wanted documents behind fifty better ones: cutting at depth first would lose them."""
    better = [star(f"better{n:02}") for n in range(50)]
    wanted = [star("wanted1", tags=("w",)), star("wanted2", tags=("w",))]
    await stand.write(better + wanted)
    assert await found(stand.source, query(wanted=Eq("tags", "w"), depth=3)) == ["wanted1", "wanted2"]


async def test_depth_bounds_the_answer_and_ranks_fall(stand: Stand) -> None:
    await stand.write([star(f"{n}") for n in range(20)])
    ranking = await stand.source.search(query(depth=7))
    assert len(ranking) == 7
    assert list(ranking.scores) == sorted(ranking.scores, reverse=True)


async def test_the_same_question_has_the_same_answer(stand: Stand) -> None:
    await stand.write([star(f"{n}") for n in range(20)])
    first = await stand.source.search(query())
    assert all([await stand.source.search(query()) == first for _ in range(20)])
    assert await (await stand.again()).search(query()) == first


async def test_any_id_goes_in_and_comes_out(stand: Stand) -> None:
    ids = ["é", "日本語", "a\0b", "a/b c", "x" * 512, '"quoted"', "🦊", "e\u0301", "'; --", "\u202e"]
    await stand.write([star(id_) for id_ in ids])
    assert await found(stand.source) == sorted(ids)
    if stand.reader:
        assert sorted(await stand.reader.fetch(SCOPE, ids)) == sorted(ids)
    await stand.write([], [(SCOPE.tenant, SCOPE.environment, id_) for id_ in ids[1:]])
    assert await found(stand.source) == ids[:1]


HOSTILE = [
    '"', "'", "\\", "a AND b", "a OR", "title:*", "(", ")", "[* TO *]", "+a -b", "a~2", "*", "?", "\0", "\n\n",
    "'; DROP TABLE documents; --", "MATCH (n) DETACH DELETE n", "{{7*7}}", "${jndi:ldap://x}", '"unclosed', '""',
    "a" * 4_096, "word " * 800, "\u202e\u200b", "🦊" * 100, "NOT", "/regex/", "<script>", "%00", "\ufeff",
]  # fmt: skip


async def test_a_link_may_come_before_its_target(stand: Stand) -> None:
    await stand.write([star("a", links=(Link("later", "see"),))])
    assert await found(stand.source) == ["a"]
    await stand.write([star("later", links=(Link("a", "see"),))])
    assert await found(stand.source) == ["a", "later"]
    await stand.write([], [(SCOPE.tenant, SCOPE.environment, "later")])
    assert await found(stand.source) == ["a"]
    await stand.write([star("later")])
    assert await found(stand.source) == ["a", "later"]


async def test_no_query_is_syntax(stand: Stand) -> None:
    await stand.write([star("a")])
    for text in HOSTILE:
        assert set((await stand.source.search(query(text))).ids) <= {"a"}
    assert await found(stand.source) == ["a"]


async def test_no_field_is_syntax(stand: Stand) -> None:
    """Hostile text in every field of a document, in its scope and in a filter: found by it, and by nothing else."""
    for number, text in enumerate(HOSTILE):
        name = text[:200] or "x"
        scope = Scope(f"{number} {name}", name)
        hostile = star(
            f"{name} {number}",
            parent_id=name,
            metadata={name: text},
            entities=("Alpha Centauri", name),
            links=(Link(name, name),),
            collection=name,
            title=f"Alpha Centauri {name}",
            url=text,
            language=text,
            tags=(text,),
            scope=scope,
        )
        await stand.write([hostile, star("bystander", scope=scope)])
        for field in ("collection", "language", "tags", "url", f"metadata.{name}"):
            value = name if field == "collection" else text
            assert await found(stand.source, query(wanted=Eq(field, value), scope=scope)) == [f"{name} {number}"], field
        assert await found(stand.source, query(scope=scope)) == sorted([f"{name} {number}", "bystander"])


async def test_ten_thousand_documents_in_one_write(stand: Stand) -> None:
    many = [entry(f"{n:05}", f"page {n} of many", seed=n + 2, tags=(f"t{n % 100}",)) for n in range(9_998)]
    await stand.write([*many, star("a"), star("b", tags=("t7",))])
    assert await found(stand.source, query(depth=2)) == ["a", "b"]
    assert await found(stand.source, query(wanted=Eq("tags", "t7"), depth=1)) == ["b"]
    await stand.write([], [each.record.key for each in many])
    assert await found(stand.source, query(depth=50)) == ["a", "b"]


@settings(max_examples=40)
@given(held=documents(), wanted=filters)
async def test_the_same_filter_gives_the_same_documents_everywhere(
    stand: Stand, held: list[Document], wanted: Filter
) -> None:
    """Each example in a scope of its own."""
    scope = Scope(uuid.uuid4().hex)
    entries = [Entry(Record(scope.tenant, scope.environment, each, ("Alpha Centauri",)), unit(1)) for each in held]
    await stand.write(entries)
    expected = sorted(each.id for each in held if matches(wanted, fields(Record("t", "e", each))))
    assert await found(stand.source, query("alpha centauri", wanted=wanted, scope=scope)) == expected


KEYWORDS = ["embedded keyword", pytest.param("opensearch", marks=pytest.mark.server)]
GRAPHS = ["embedded graph", pytest.param("memgraph", marks=pytest.mark.server)]


@pytest.mark.parametrize("stand", KEYWORDS, indirect=True)
async def test_a_word_of_a_title_says_more_than_one_of_the_text(stand: Stand) -> None:
    await stand.write(
        [
            entry("text", "Antares and a sea of sand", title="One of many"),
            entry("title", "And one of the many sands", title="Antares sea"),
        ]
    )
    assert (await stand.source.search(query("antares"))).ids == ("title", "text")


@pytest.mark.parametrize("stand", KEYWORDS, indirect=True)
async def test_no_phrase_reaches_from_a_title_into_itself(stand: Stand) -> None:
    await stand.write([entry("a", "and more of it", title="Antares sea")])
    assert await found(stand.source, query('"antares sea"')) == ["a"]
    assert await found(stand.source, query('"sea antares"')) == []


@pytest.mark.parametrize("stand", GRAPHS, indirect=True)
async def test_a_graph_walks_from_documents_that_are_near(stand: Stand) -> None:
    """From a: to b by a link, to c by a name that both mention; d is alone, e may not be seen, f is another's."""
    await stand.write(
        [
            entry("a", "plain words", entities=("Proxima",), links=(Link("b", "cites"), Link("e", "cites"))),
            entry("b", "other words", entities=()),
            entry("c", "more words", entities=("Proxima", "Sirius")),
            entry("d", "last words", entities=("Vega",)),
            entry("e", "secret", entities=("Proxima",), sensitivity="restricted"),
            entry("f", "elsewhere", entities=("Proxima",), scope=Scope("other", "default")),
        ]
    )
    asked = query("nothing that is named")
    near = replace(asked, near=("a", "gone"))
    assert await found(stand.source, asked) == []
    ranking = await stand.source.search(near)
    assert set(ranking.ids) == {"a", "b", "c"}
    assert ranking.ids[0] == "a"
    assert ranking.coverage == 0.0
    assert await found(stand.source, replace(near, scope=Scope("other", "default"))) == []


@pytest.mark.parametrize("stand", GRAPHS, indirect=True)
async def test_a_graph_says_whether_a_query_names_anything_and_how_much_of_it(stand: Stand) -> None:
    await stand.write(
        [entry("a", "seen by night", entities=("Sirius",)), entry("b", "sirius vega", entities=("Vega",))]
    )
    named, unnamed = query("sirius by night"), query("seen by day")
    assert await stand.source.names(named)  # type: ignore[attr-defined]
    assert not await stand.source.names(unnamed)  # type: ignore[attr-defined]
    ranking = await stand.source.search(named)
    assert ranking.ids == ("a",)
    assert 0.0 < ranking.coverage < 1.0


@pytest.mark.parametrize("stand", GRAPHS, indirect=True)
async def test_a_name_that_only_the_unseen_mention_is_unknown(stand: Stand) -> None:
    """Whether a restricted document mentions a name must show nowhere: not in coverage, not in being asked."""
    await stand.write(
        [entry("a", "seen", entities=("Sirius",)), star("b", entities=("Zorblax Prime",), sensitivity="restricted")]
    )
    hidden = replace(query("zorblax prime"), near=("a",))
    assert not await stand.source.names(hidden)  # type: ignore[attr-defined]
    ranking = await stand.source.search(hidden)
    assert (ranking.ids, ranking.coverage) == (("a",), 0.0)
    cleared = normal(access(SCOPE, "restricted"))
    assert await stand.source.names(replace(hidden, access=cleared, filter=cleared))  # type: ignore[attr-defined]
