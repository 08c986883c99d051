"""One suite over every source: the same documents are written, the same behaviour is expected."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings

from adapters import Document, Link, Record, Scope, Viewer
from adapters.engine import view
from adapters.keyword import opensearch_documents
from adapters.model.document import fields, has_words
from adapters.model.filter import Eq, Filter, Not, access, matches, normal
from adapters.model.protection import Protection
from adapters.model.sources import KEYWORD
from adapters.model.vectors import packed
from adapters.ports import Retriever, SourceQuery, VectorRecord
from adapters.text.forms import normal_form
from fusion.columns import Documents, RankedDocument, Ranking
from fusion.values import DocumentFields
from tests.adapters.filters import documents, filters
from tests.adapters.source_fixtures import (
    EMBEDDED,
    SERVERS,
    ServerUrl,
    SourceUnderTest,
    source_query,
    source_under_test,
)
from tests.conftest import SCOPE, unit, vector_record
from tests.truth_table import DOCUMENTS, VIEWERS, visible

pytestmark = pytest.mark.anyio

QDRANT_LOCAL = pytest.param(
    "qdrant local", marks=pytest.mark.filterwarnings("ignore:(Payload indexes|Local mode):UserWarning")
)
OPENSEARCH = pytest.param("opensearch", marks=pytest.mark.server)
ON_SERVERS = [QDRANT_LOCAL, *(pytest.param(name, marks=pytest.mark.server) for name in SERVERS)]
ALL_SOURCES = [*EMBEDDED, *ON_SERVERS]
READERS = [*EMBEDDED, OPENSEARCH]
FETCHERS = [*READERS, QDRANT_LOCAL, pytest.param("qdrant", marks=pytest.mark.server)]
VECTOR_SOURCES = ["embedded vector", QDRANT_LOCAL, pytest.param("qdrant", marks=pytest.mark.server)]


@pytest.fixture(params=ALL_SOURCES)
async def subject(
    request: pytest.FixtureRequest, tmp_path: Path, server_url: ServerUrl
) -> AsyncIterator[SourceUnderTest]:
    async with source_under_test(request.param, tmp_path, server_url) as opened:
        yield opened


def star(id_: str, **fields: object) -> VectorRecord:
    """A document that every source finds: by its vector, its words and the name in it."""
    return vector_record(id_, "We saw Alpha Centauri tonight", seed=1, **fields)


async def sorted_ids(retriever: Retriever, query: SourceQuery | None = None) -> list[str]:
    return sorted((await retriever.search(query or source_query())).ids)


def fields_by_id(ranking: Ranking) -> dict[str, DocumentFields]:
    """The rank fields of the documents that have any."""
    columns = ranking.fields
    rows = {} if columns is None else {id_: columns.row(row) for row, id_ in enumerate(ranking.ids)}
    return {id_: row for id_, row in rows.items() if row != DocumentFields()}


def content(ranking: Ranking) -> tuple[str, list[RankedDocument], dict[str, DocumentFields], float]:
    """Everything of a ranking, in a form that can be compared."""
    return ranking.source, list(ranking), fields_by_id(ranking), ranking.entity_coverage


async def test_an_empty_index_has_no_results(subject: SourceUnderTest) -> None:
    assert await sorted_ids(await subject.reopen()) == []


async def test_added_documents_are_found_also_after_a_restart(subject: SourceUnderTest) -> None:
    await subject.write([star("a"), star("b")])
    assert await sorted_ids(subject.source) == ["a", "b"]
    assert await sorted_ids(await subject.reopen()) == ["a", "b"]


@pytest.mark.parametrize("subject", ON_SERVERS, indirect=True)
async def test_an_index_that_was_dropped_has_no_documents_and_can_be_created_again(subject: SourceUnderTest) -> None:
    await subject.write([star("a"), star("b", links=(Link("a", "next"),))])
    for _ in range(2):
        await subject.source.drop()  # type: ignore[attr-defined]
        assert not await subject.source.check()  # type: ignore[attr-defined]
    assert await sorted_ids(await subject.reopen()) == []
    await subject.write([star("c")])
    assert await sorted_ids(subject.source) == ["c"]


async def test_a_replaced_document_is_no_longer_found_by_its_old_content(subject: SourceUnderTest) -> None:
    await subject.write([star("a"), star("b")])
    await subject.write([vector_record("a", "now about Proxima and nothing else", seed=2, tags=("new",))])
    assert await sorted_ids(subject.source, source_query(condition=Eq("tags", "new"))) in (["a"], [])
    old = await subject.source.search(source_query())
    assert old.ids[0] == "b"
    if subject.fetcher:
        records = await subject.fetcher.fetch(SCOPE, Documents.of_ids(["a"]))
        assert records["a"].document.text == "now about Proxima and nothing else"


async def test_deleted_documents_are_not_found(subject: SourceUnderTest) -> None:
    await subject.write([star("a"), star("b")])
    await subject.write([], [("default", "default", "a"), ("default", "default", "does not exist")])
    assert await sorted_ids(subject.source) == ["b"]
    assert await sorted_ids(await subject.reopen()) == ["b"]
    await subject.write([], [("default", "default", "b")])
    assert await sorted_ids(subject.source) == []
    await subject.write([star("a")])
    assert await sorted_ids(subject.source) == ["a"]


async def test_of_several_records_with_one_id_in_one_write_the_last_counts(subject: SourceUnderTest) -> None:
    await subject.write([star("a", tags=("first",)), star("a", tags=("last",))])
    assert await sorted_ids(subject.source) == ["a"]
    assert await sorted_ids(subject.source, source_query(condition=Eq("tags", "first"))) == []


async def test_a_scope_never_returns_documents_of_another(subject: SourceUnderTest) -> None:
    other, third = Scope("other", "default"), Scope("default", "other")
    await subject.write([star("a"), star("a", scope=other), star("b", scope=third)])
    assert await sorted_ids(subject.source) == ["a"]
    assert await sorted_ids(subject.source, source_query(scope=other)) == ["a"]
    assert await sorted_ids(subject.source, source_query(scope=third)) == ["b"]
    await subject.write([], [("other", "default", "a")])
    assert await sorted_ids(subject.source) == ["a"]
    assert await sorted_ids(subject.source, source_query(scope=other)) == []


async def test_documents_above_the_clearance_are_not_found(subject: SourceUnderTest) -> None:
    await subject.write([star("a"), star("b", sensitivity="sensitive"), star("c", sensitivity="public")])
    assert await sorted_ids(subject.source) == ["a", "c"]


async def test_a_ranking_contains_the_rank_fields_of_its_documents(subject: SourceUnderTest) -> None:
    """2026 begins 1,767,225,600 seconds after 1970. Document c has no rank fields."""
    new_year = datetime(2026, 1, 1, tzinfo=UTC)
    await subject.write(
        [star("a", parent_id="p", chunk_index=3), star("b", importance=7, created_at=new_year), star("c")]
    )
    await subject.write([star("d", chunk_index=0)])
    assert fields_by_id(await subject.source.search(source_query())) == {
        "a": DocumentFields(parent="p", chunk=3),
        "b": DocumentFields(created_at=1_767_225_600.0, importance=7.0),
        "d": DocumentFields(chunk=0),
    }
    reopened = await subject.reopen()
    assert fields_by_id(await reopened.search(source_query(depth=50)))["a"] == DocumentFields("p", 3)


async def test_only_the_keyword_source_uses_expansions(subject: SourceUnderTest) -> None:
    await subject.write(
        [
            star("a"),
            vector_record("b", "the nearest star is Proxima", seed=2),
            vector_record("c", "near and far", seed=3),
        ]
    )
    plain = await subject.source.search(source_query())
    expanded = await subject.source.search(
        msgspec.structs.replace(source_query(), expansions=("nearest stars", "nowhere"))
    )
    assert expanded.ids == (("a", "b") if expanded.source == KEYWORD.name else plain.ids)
    quoted = msgspec.structs.replace(source_query('"Alpha Centauri"'), expansions=("nearest stars",))
    assert (await subject.source.search(quoted)).ids == (
        await subject.source.search(source_query('"Alpha Centauri"'))
    ).ids


@pytest.mark.parametrize("subject", VECTOR_SOURCES, indirect=True)
async def test_of_a_document_with_several_vectors_the_nearest_counts(subject: SourceUnderTest) -> None:
    def document(id_: str, *seeds: int) -> VectorRecord:
        return VectorRecord(vector_record(id_).record, np.stack([unit(seed) for seed in seeds]))

    for _ in range(2):  # the second time, each replaces itself
        await subject.write([document("a", 1), document("b", 2, 3, 4, 5), document("c", 6, 7), document("d", 4, 8)])
    for source in (subject.source, await subject.reopen()):
        for seed, first in ((1, {"a"}), (3, {"b"}), (5, {"b"}), (7, {"c"}), (4, {"b", "d"})):
            ranking = await source.search(msgspec.structs.replace(source_query(), vector=unit(seed)))
            assert sorted(ranking.ids) == ["a", "b", "c", "d"]
            assert set(ranking.ids[: len(first)]) == first
            assert next(iter(ranking)).score == pytest.approx(1.0, abs=1e-5)
            assert (
                len((await source.search(msgspec.structs.replace(source_query(depth=2), vector=unit(seed)))).ids) == 2
            )
    await subject.write([document("b", 9)], [("default", "default", "d")])
    (best, *_) = (await subject.source.search(msgspec.structs.replace(source_query(), vector=unit(4)))).ids
    assert best != "b"


@pytest.mark.parametrize("subject", READERS, indirect=True)
async def test_a_reader_finds_documents_by_a_filter(subject: SourceUnderTest) -> None:
    assert subject.reader is not None
    await subject.write([star("a", parent_id="p", chunk_index=1), star("b", parent_id="p", chunk_index=2)])
    await subject.write([star("c", parent_id="q", chunk_index=1), star("s", parent_id="p", sensitivity="restricted")])
    of_p = source_query(condition=Eq("parent_id", "p")).filter
    assert {record.document.id for record in await subject.reader.find(of_p, 10)} == {"a", "b"}
    assert len(await subject.reader.find(of_p, 1)) == 1
    assert await subject.reader.find(source_query(condition=Eq("parent_id", "none")).filter, 10) == []


@pytest.mark.parametrize("subject", READERS, indirect=True)
async def test_the_pages_of_a_reader_have_each_document_once_whatever_is_written_meanwhile(
    subject: SourceUnderTest,
) -> None:
    reader = subject.reader
    assert reader is not None
    kept = [star(f'{n} é"\\', collection="ab"[n % 2], parent_id="p") for n in range(60)]
    await subject.write([*kept, star("x"), star("s", parent_id="p", sensitivity="restricted")])
    condition = source_query(condition=Eq("parent_id", "p")).filter
    for limit in (1, 7, 30, 60, 100):
        listed: list[str] = []
        start: str | None = None
        while True:
            page = await reader.page(condition, limit, start)
            assert len(page.records) <= limit
            listed += [record.doc_id for record in page.records]
            if page.next is None:
                break
            start = page.next
            if limit == 7:  # what was listed is deleted, and the list goes on after it
                await subject.write([], [page.records[0].key, page.records[-1].key])
        assert sorted(listed) == sorted(each.record.doc_id for each in kept)
        await subject.write(kept)
    assert (await reader.page(condition, 100, "\uffff")).records == []


@pytest.mark.parametrize("subject", READERS, indirect=True)
async def test_a_page_of_large_documents_ends_early(subject: SourceUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    assert subject.reader is not None
    for module in (view, opensearch_documents):
        monkeypatch.setattr(module, "MAX_PAGE_BYTES", 40_000)
    await subject.write([vector_record(str(n), 1_000 * "long text ") for n in range(7)])
    condition = source_query().filter
    first = await subject.reader.page(condition, 10)
    second = await subject.reader.page(condition, 10, first.next)
    third = await subject.reader.page(condition, 10, second.next)
    assert [len(each.records) for each in (first, second, third)] == [3, 3, 1]
    assert third.next is None


@pytest.mark.parametrize("subject", FETCHERS, indirect=True)
async def test_documents_are_fetched_as_they_were_written_and_only_of_their_scope(subject: SourceUnderTest) -> None:
    fetcher = subject.fetcher
    assert fetcher is not None
    first, second = await write_two(subject)
    assert await fetcher.fetch(SCOPE, Documents.of_ids(["a", "b", "none"])) == {"a": first.record, "b": second.record}
    assert await fetcher.fetch(Scope("third"), Documents.of_ids(["a"])) == {}
    assert await fetcher.fetch(SCOPE, Documents.of_ids([])) == {}
    await subject.write([], [(SCOPE.tenant, SCOPE.environment, "a")])
    assert await fetcher.fetch(SCOPE, Documents.of_ids(["a", "b"])) == {"b": second.record}


@pytest.mark.parametrize("subject", READERS, indirect=True)
async def test_a_reader_returns_protections_only_of_their_scope(subject: SourceUnderTest) -> None:
    reader = subject.reader
    assert reader is not None
    await write_two(subject)
    await subject.write([star("c", visibility="team", owner="alice", team="legal")])
    assert await reader.protections(SCOPE, ["a", "b", "c", "none"]) == {
        "a": Protection(),
        "b": Protection("restricted"),
        "c": Protection("normal", "team", "alice", "legal"),
    }
    assert await reader.protections(Scope("third"), ["a"]) == {}


async def test_each_row_of_the_truth_table_holds(subject: SourceUnderTest) -> None:
    records = [star(id_, **each.protection._asdict()) for id_, each in DOCUMENTS.items()]
    await subject.write(records)
    for viewer in VIEWERS:
        allowed = normal(access(SCOPE, viewer))
        query = msgspec.structs.replace(source_query(depth=100), access=allowed, filter=allowed)
        found = await sorted_ids(subject.source, query)
        said = visible(viewer)
        assert {id_: id_ in found for id_ in said} == said, viewer


async def write_two(subject: SourceUnderTest) -> tuple[VectorRecord, VectorRecord]:
    """Two documents, and one of another tenant with the id of the first."""
    first, second = (
        star("a", tags=("x",), metadata={"n": [1, "é"], "m": None}),
        star("b", parent_id="a", chunk_index=2, sensitivity="restricted"),
    )
    with_vector = msgspec.structs.replace(second.record, vector=packed([0.1, -2.5]))
    second = dataclasses.replace(second, record=with_vector)
    foreign = dataclasses.replace(first, record=msgspec.structs.replace(first.record, tenant="other"))
    await subject.write([first, second, foreign])
    return first, second


async def test_a_filter_is_applied_within_the_search_not_after_it(subject: SourceUnderTest) -> None:
    """Two documents that pass, behind fifty better ones that do not: a filter after the search would find neither."""
    better = [star(f"better{n:02}") for n in range(50)]
    passing = [star("passing1", tags=("p",)), star("passing2", tags=("p",))]
    await subject.write(better + passing)
    found = await sorted_ids(subject.source, source_query(condition=Eq("tags", "p"), depth=3))
    assert found == ["passing1", "passing2"]


async def test_a_ranking_has_at_most_depth_documents_with_falling_scores(subject: SourceUnderTest) -> None:
    await subject.write([star(f"{n}") for n in range(20)])
    ranking = await subject.source.search(source_query(depth=7))
    assert len(ranking) == 7
    assert ranking.scores.tolist() == sorted(ranking.scores.tolist(), reverse=True)


async def test_the_same_query_has_the_same_ranking(subject: SourceUnderTest) -> None:
    await subject.write([star(f"{n}") for n in range(20)])
    first = content(await subject.source.search(source_query()))
    assert all([content(await subject.source.search(source_query())) == first for _ in range(20)])
    assert content(await (await subject.reopen()).search(source_query())) == first


async def test_every_id_is_returned_as_it_was_written(subject: SourceUnderTest) -> None:
    ids = ["é", "日本語", "a\0b", "a/b c", "x" * 512, '"quoted"', "🦊", "e\u0301", "'; --", "\u202e"]
    await subject.write([star(id_) for id_ in ids])
    assert await sorted_ids(subject.source) == sorted(ids)
    if subject.fetcher:
        assert sorted(await subject.fetcher.fetch(SCOPE, Documents.of_ids(ids))) == sorted(ids)
    await subject.write([], [(SCOPE.tenant, SCOPE.environment, id_) for id_ in ids[1:]])
    assert await sorted_ids(subject.source) == ids[:1]


HOSTILE = [
    '"', "'", "\\", "a AND b", "a OR", "title:*", "(", ")", "[* TO *]", "+a -b", "a~2", "*", "?", "\0", "\n\n",
    "'; DROP TABLE documents; --", "MATCH (n) DETACH DELETE n", "{{7*7}}", "${jndi:ldap://x}", '"unclosed', '""',
    "a" * 4_096, "word " * 800, "\u202e\u200b", "🦊" * 100, "NOT", "/regex/", "<script>", "%00", "\ufeff",
]  # fmt: skip


async def test_a_link_may_come_before_its_target(subject: SourceUnderTest) -> None:
    await subject.write([star("a", links=(Link("later", "see"),))])
    assert await sorted_ids(subject.source) == ["a"]
    await subject.write([star("later", links=(Link("a", "see"),))])
    assert await sorted_ids(subject.source) == ["a", "later"]
    await subject.write([], [(SCOPE.tenant, SCOPE.environment, "later")])
    assert await sorted_ids(subject.source) == ["a"]
    await subject.write([star("later")])
    assert await sorted_ids(subject.source) == ["a", "later"]


async def test_query_text_is_never_parsed_as_syntax(subject: SourceUnderTest) -> None:
    await subject.write([star("a")])
    for text in HOSTILE:
        assert set((await subject.source.search(source_query(text))).ids) <= {"a"}
    assert await sorted_ids(subject.source) == ["a"]


async def test_field_values_are_never_parsed_as_syntax(subject: SourceUnderTest) -> None:
    """Hostile text in every field of a document, in its scope and in a filter: found by it and by no other value."""
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
        await subject.write([hostile, star("bystander", scope=scope)])
        for field in ("collection", "language", "tags", "url", f"metadata.{name}"):
            value = {"collection": name, f"metadata.{name}": text.strip()}.get(field, text)
            condition = Eq(normal_form(field), normal_form(value)) if has_words(field) else Eq(field, value)
            query = source_query(condition=condition, scope=scope)
            assert await sorted_ids(subject.source, query) == [hostile.record.doc_id], field
        both = sorted([hostile.record.doc_id, "bystander"])
        assert await sorted_ids(subject.source, source_query(scope=scope)) == both


@pytest.mark.slow
async def test_one_write_may_have_ten_thousand_documents(subject: SourceUnderTest) -> None:
    many = [vector_record(f"{n:05}", f"page {n} of many", seed=n + 2, tags=(f"t{n % 100}",)) for n in range(9_998)]
    await subject.write([*many, star("a"), star("b", tags=("t7",))])
    assert await sorted_ids(subject.source, source_query(depth=2)) == ["a", "b"]
    assert await sorted_ids(subject.source, source_query(condition=Eq("tags", "t7"), depth=1)) == ["b"]
    await subject.write([], [each.record.key for each in many])
    assert await sorted_ids(subject.source, source_query(depth=50)) == ["a", "b"]


@settings(max_examples=40)
@given(corpus=documents(), condition=filters)
async def test_every_source_agrees_with_the_definition_of_a_filter(
    subject: SourceUnderTest, corpus: list[Document], condition: Filter
) -> None:
    """Each example in a scope of its own."""
    scope = Scope(uuid.uuid4().hex)
    records = [Record(scope.tenant, scope.environment, each, ("Alpha Centauri",)) for each in corpus]
    await subject.write([VectorRecord(record, unit(1)[np.newaxis]) for record in records])
    expected = sorted(record.doc_id for record in records if matches(condition, fields(record)))
    query = source_query("alpha centauri", condition=condition, scope=scope)
    assert await sorted_ids(subject.source, query) == expected


KEYWORD_SOURCES = ["embedded keyword", OPENSEARCH]
GRAPH_SOURCES = ["embedded graph", pytest.param("memgraph", marks=pytest.mark.server)]


@pytest.mark.parametrize("subject", KEYWORD_SOURCES, indirect=True)
async def test_a_word_of_a_title_scores_higher_than_one_of_the_text(subject: SourceUnderTest) -> None:
    await subject.write(
        [
            vector_record("text", "Antares and a sea of sand", title="One of many"),
            vector_record("title", "And one of the many sands", title="Antares sea"),
        ]
    )
    assert (await subject.source.search(source_query("antares"))).ids == ("title", "text")


@pytest.mark.parametrize("subject", KEYWORD_SOURCES, indirect=True)
@pytest.mark.parametrize(
    "fields",
    [
        {"tags": ("aardvarks",)},
        {"keywords": ("burrow", "aardvark")},
        {"local_keywords": ("aardvark",)},
        {"query_expansion_keywords": ("aardvark",)},
        {"summary": "About the aardvark."},
        {"local_summary": "The aardvark digs."},
    ],
    ids=lambda fields: str(next(iter(fields))),
)
async def test_what_describes_a_document_is_searched_by_keyword(
    subject: SourceUnderTest, fields: dict[str, object]
) -> None:
    await subject.write([vector_record("described", "Nothing of it is in the text.", **fields), vector_record("other")])
    assert await sorted_ids(subject.source, source_query("aardvark")) == ["described"]


@pytest.mark.parametrize("subject", KEYWORD_SOURCES, indirect=True)
async def test_no_phrase_matches_across_repetitions_of_the_title(subject: SourceUnderTest) -> None:
    await subject.write([vector_record("a", "and more of it", title="Antares sea")])
    assert await sorted_ids(subject.source, source_query('"antares sea"')) == ["a"]
    assert await sorted_ids(subject.source, source_query('"sea antares"')) == []


@pytest.mark.parametrize("subject", GRAPH_SOURCES, indirect=True)
async def test_a_graph_walks_from_the_seeds_of_a_query(subject: SourceUnderTest) -> None:
    """From a to b by a link, to c by a common name; d is not connected, e is not visible, f is of another scope."""
    await subject.write(
        [
            vector_record("a", "plain words", entities=("Proxima",), links=(Link("b", "cites"), Link("e", "cites"))),
            vector_record("b", "other words", entities=()),
            vector_record("c", "more words", entities=("Proxima", "Sirius")),
            vector_record("d", "last words", entities=("Vega",)),
            vector_record("e", "secret", entities=("Proxima",), sensitivity="restricted"),
            vector_record("f", "elsewhere", entities=("Proxima",), scope=Scope("other", "default")),
        ]
    )
    without_names = source_query("no known name")
    seeded = msgspec.structs.replace(without_names, seeds=Documents.of_ids(("a", "deleted")))
    assert await sorted_ids(subject.source, without_names) == []
    ranking = await subject.source.search(seeded)
    assert set(ranking.ids) == {"a", "b", "c"}
    assert ranking.ids[0] == "a"
    assert ranking.entity_coverage == 0.0
    assert await sorted_ids(subject.source, msgspec.structs.replace(seeded, scope=Scope("other", "default"))) == []


@pytest.mark.parametrize("subject", GRAPH_SOURCES, indirect=True)
async def test_a_graph_walks_through_what_a_filter_excludes_and_never_through_what_is_hidden(
    subject: SourceUnderTest,
) -> None:
    def chain(start: str, middle: str, end: str, sensitivity: str) -> list[VectorRecord]:
        return [
            vector_record(start, "plain words", entities=(), links=(Link(middle, "cites"),)),
            vector_record(
                middle, "other", entities=(), links=(Link(end, "cites"),), sensitivity=sensitivity, tags=("x",)
            ),
            vector_record(end, "more words", entities=()),
        ]

    await subject.write([*chain("a", "b", "c", "normal"), *chain("d", "e", "f", "restricted")])
    query = source_query("no known name", Not(Eq("tags", "x")))
    seeded = msgspec.structs.replace(query, seeds=Documents.of_ids(("a", "d", "e")))
    assert set((await subject.source.search(seeded)).ids) == {"a", "c", "d"}
    hidden = msgspec.structs.replace(query, seeds=Documents.of_ids(("e",)))
    assert (await subject.source.search(hidden)).ids == ()


@pytest.mark.parametrize("subject", GRAPH_SOURCES, indirect=True)
async def test_a_graph_reports_whether_a_query_mentions_an_entity_and_the_coverage(subject: SourceUnderTest) -> None:
    await subject.write(
        [
            vector_record("a", "seen by night", entities=("Sirius",)),
            vector_record("b", "sirius vega", entities=("Vega",)),
        ]
    )
    named, unnamed = source_query("sirius by night"), source_query("seen by day")
    assert await subject.source.mentions_entity(named)  # type: ignore[attr-defined]
    assert not await subject.source.mentions_entity(unnamed)  # type: ignore[attr-defined]
    ranking = await subject.source.search(named)
    assert ranking.ids == ("a",)
    assert 0.0 < ranking.entity_coverage < 1.0


@pytest.mark.parametrize("subject", GRAPH_SOURCES, indirect=True)
async def test_a_name_that_only_invisible_documents_mention_is_unknown(subject: SourceUnderTest) -> None:
    """That a restricted document mentions a name must not show, neither in the coverage nor in the lookup."""
    await subject.write(
        [
            vector_record("a", "seen", entities=("Sirius",)),
            star("b", entities=("Zorblax Prime",), sensitivity="restricted"),
        ]
    )
    hidden = msgspec.structs.replace(source_query("zorblax prime"), seeds=Documents.of_ids(("a",)))
    assert not await subject.source.mentions_entity(hidden)  # type: ignore[attr-defined]
    ranking = await subject.source.search(hidden)
    assert (ranking.ids, ranking.entity_coverage) == (("a",), 0.0)
    cleared = normal(access(SCOPE, Viewer("restricted")))
    assert await subject.source.mentions_entity(msgspec.structs.replace(hidden, access=cleared, filter=cleared))  # type: ignore[attr-defined]
