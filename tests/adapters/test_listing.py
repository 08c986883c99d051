"""Documents in an order and counted by their values: both engines agree with a loop over the records."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters import Record, Scope, Viewer
from adapters.engine import EmbeddedIndex, listing
from adapters.keyword import opensearch_listing
from adapters.model.document import fields
from adapters.model.facets import Facet, FacetValue
from adapters.model.filter import NOTHING, And, Eq, Filter, Range, access, matches, normal
from adapters.model.index_terms import value_term
from adapters.ports import SearchedDocuments, SortKey, VectorRecord
from fusion.columns import Documents
from tests.adapters.source_fixtures import ServerUrl, SourceUnderTest, source_under_test
from tests.conftest import SCOPE, vector_record

pytestmark = pytest.mark.anyio
VISIBLE = normal(access(SCOPE, Viewer("normal")))
FIELDS = (
    "id",
    "collection",
    "created_at",
    "importance",
    "tags",
    "language",
    "metadata.price",
    "metadata.mixed",
    'metadata.(a|b) "c".*',
    "metadata.absent",
)
_SPECIAL = '(a|b) "c".*'


def random_records(seed: int) -> list[VectorRecord]:
    """Documents with values of every kind, several of them, equal ones, and none; some are hidden."""
    chosen = random.Random(seed)

    def some(values: Sequence[Any], most: int = 3) -> list[Any]:
        return chosen.choices(values, k=chosen.randint(0, most))

    def record(number: int) -> VectorRecord:
        metadata = {
            "price": some([0, 1, 2.5, -7, 1e300, 2**53 + 1, 99]),
            "mixed": some([True, False, 3, "3", "a", "B", "ä", "\U0001f98a", "z" * 600]),
            _SPECIAL: some(["x", "y"]),
            "unrelated": some(["price", "x"]),
        }
        return vector_record(
            chosen.choice(["a", "a b", "a!", 'a"b', "a\\b", "\u00e9", "\U0001f98a"]) + str(number),
            collection=chosen.choice(["notes", "mails"]),
            created_at=chosen.choice([None, datetime(2020 + number % 4, 1 + number % 12, 3, tzinfo=UTC)]),
            importance=chosen.choice([None, 1.0, 2.0, 7.5]),
            tags=tuple(sorted({*some(["red", "green", "blue"])})),
            language=chosen.choice([None, "en", "de"]),
            sensitivity=chosen.choice(["normal", "normal", "restricted"]),
            metadata={key: values for key, values in metadata.items() if values},
            scope=chosen.choice([SCOPE, SCOPE, SCOPE, Scope("other", SCOPE.environment)]),
        )

    return [record(number) for number in range(40)]


@pytest.fixture(params=["embedded keyword", pytest.param("opensearch", marks=pytest.mark.server)])
async def subject(
    request: pytest.FixtureRequest, tmp_path: Path, server_url: ServerUrl
) -> AsyncIterator[SourceUnderTest]:
    async with source_under_test(request.param, tmp_path, server_url) as opened:
        yield opened


async def written(subject: SourceUnderTest, records: Sequence[VectorRecord]) -> SearchedDocuments:
    """The store of the records, written in two parts."""
    await subject.write(records[: len(records) // 2])
    await subject.write(records[len(records) // 2 :])
    return subject.reader.current() if isinstance(subject.reader, EmbeddedIndex) else subject.source  # type: ignore[return-value]


def passing(records: Sequence[VectorRecord], condition: Filter) -> list[Record]:
    return [each.record for each in records if matches(condition, fields(each.record))]


def expected_order(records: Sequence[Record], sort: SortKey | None) -> list[str]:
    by_id = sorted(records, key=lambda record: record.doc_id)
    if sort is None:
        return [record.doc_id for record in by_id]

    def terms(record: Record) -> list[str]:
        return [value_term(sort.field, value) for value in fields(record).get(sort.field, ())]

    having = [record for record in by_id if terms(record)]
    first = max if sort.descending else min
    having.sort(key=lambda record: first(terms(record)), reverse=sort.descending)
    return [record.doc_id for record in [*having, *(record for record in by_id if not terms(record))]]


def expected_values(records: Sequence[Record], field: str) -> Counter[tuple[type, bool | str]]:
    found = (set(fields(record).get(field, ())) for record in records)
    texts = [{(type(value), value) for value in values if isinstance(value, bool | str)} for values in found]
    return Counter(value for of_record in texts for value in of_record if len(str(value[1])) <= 512)


@pytest.mark.parametrize("seed", [1, 2])
async def test_documents_are_in_the_order_of_every_field(
    subject: SourceUnderTest, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opensearch_listing, "_MIN_VALUES", 2)  # so that documents have more values than are read
    monkeypatch.setattr(listing, "_MAX_SORTED", 5)
    records = random_records(seed)
    store = await written(subject, records)
    orders = [None, *(SortKey(field, descending) for field in FIELDS for descending in (False, True))]
    for condition in (VISIBLE, normal(And((VISIBLE, Eq("collection", "notes"))))):
        matching = passing(records, condition)
        for sort in orders:
            expected = expected_order(matching, sort)
            for count in (1, 3, 7, len(matching), 100):
                found = await store.ordered(condition, sort, count)
                assert (list(found.documents.ids), found.total) == (expected[:count], len(matching)), (sort, count)


@pytest.mark.parametrize("seed", [1, 2])
async def test_values_are_counted_by_document(subject: SourceUnderTest, seed: int) -> None:
    records = random_records(seed)
    store = await written(subject, records)
    matching = passing(records, VISIBLE)
    some = Documents.of_ids([record.doc_id for record in matching[::2]])
    for within, counted in ((None, matching), (some, matching[::2])):
        for size in (1, 2, 100):
            found = await store.facets(SCOPE, dict.fromkeys(FIELDS, size), VISIBLE, within)
            assert set(found) == set(FIELDS)
            for field, facet in found.items():
                check_values(facet, expected_values(counted, field), size, field)
                check_ranges(facet, counted, field, size)


def check_values(facet: Facet, expected: Counter[tuple[type, bool | str]], size: int, field: str) -> None:
    ordered = sorted(expected.items(), key=lambda item: (-item[1], item[0][0] is str, item[0][1]))
    values = [(type(each.value), each.value, each.count) for each in facet.values]
    assert values == [(*value, count) for value, count in ordered][:size], field
    assert facet.others == expected.total() - sum(count for *_, count in values)
    assert facet.max_error == 0


def check_ranges(facet: Facet, counted: Sequence[Record], field: str, size: int) -> None:
    """Each number is in one range, whose bounds work in a filter."""
    assert len(facet.ranges) <= size
    having = Range(field, gte=-1.8e308)
    assert bool(facet.ranges) == any(matches(normal(having), fields(record)) for record in counted)
    covered = set()
    for each in facet.ranges:
        condition = normal(Range(field, gte=each.gte, lt=each.lt))
        inside = {record.doc_id for record in counted if matches(condition, fields(record))}
        assert each.count == len(inside) > 0, (field, each)
        covered |= inside
    assert covered == {record.doc_id for record in counted if matches(normal(having), fields(record))}


async def test_nothing_of_another_caller_is_listed_or_counted(subject: SourceUnderTest) -> None:
    hidden = {"metadata": {"key": "hidden", "number": 7}, "tags": ("hidden",)}
    records = [
        vector_record("secret", sensitivity="restricted", **hidden),
        vector_record("other", scope=Scope("other", SCOPE.environment), **hidden),
    ]
    store = await written(subject, records)
    within = Documents.of_ids([record.record.doc_id for record in records])
    for chosen in (None, within):
        facets = await store.facets(SCOPE, {"tags": 10, "metadata.key": 10, "metadata.number": 10}, VISIBLE, chosen)
        assert set(facets.values()) == {Facet((), (), 0)}
    found = await store.ordered(VISIBLE, SortKey("metadata.key"), 10)
    assert (found.documents.ids, found.total) == ((), 0)
    assert (await store.ordered(NOTHING, None, 10)).total == 0


async def test_a_value_that_a_document_has_twice_counts_once(subject: SourceUnderTest) -> None:
    store = await written(subject, [vector_record("a", metadata={"k": ["x", "x", 1, 1, 1.0]}), vector_record("b")])
    facet = (await store.facets(SCOPE, {"metadata.k": 5}, VISIBLE))["metadata.k"]
    assert facet.values == (FacetValue("x", 1),)
    assert [each.count for each in facet.ranges] == [1]


async def test_deleted_and_replaced_documents_are_not_counted(subject: SourceUnderTest) -> None:
    records = [vector_record(id_, metadata={"k": "old"}) for id_ in ("a", "b", "c")]
    await written(subject, records)
    await subject.write([vector_record("a", metadata={"k": "new"})], [records[1].record.key])
    store: Any = subject.reader.current() if isinstance(subject.reader, EmbeddedIndex) else subject.source
    facet = (await store.facets(SCOPE, {"metadata.k": 5}, VISIBLE))["metadata.k"]
    assert {each.value: each.count for each in facet.values} == {"new": 1, "old": 1}
    found = await store.ordered(VISIBLE, SortKey("metadata.k"), 5)
    assert (found.documents.ids, found.total) == (("a", "c"), 2)


async def test_documents_with_many_values_are_read_in_few_requests(subject: SourceUnderTest) -> None:
    """Each has a hundred of its own, which are neighbours in the order."""
    records = [
        vector_record(f"d{number:02}", metadata={"k": [f"{number:02}-{value:02}" for value in range(100)]})
        for number in range(60)
    ]
    store = await written(subject, records)
    requests = 0
    if isinstance(store, opensearch_listing.OpenSearchListing):
        searched = store._searched

        async def counted(body: Any) -> Any:
            nonlocal requests
            requests += 1
            return await searched(body)

        store._searched = counted  # type: ignore[method-assign]
    for count in (11, 51, 60):
        requests = 0
        order = SortKey("metadata.k", descending=True)
        found = await store.ordered(VISIBLE, order, count)
        assert list(found.documents.ids) == expected_order([each.record for each in records], order)[:count]
        assert requests <= 24


@pytest.mark.parametrize("sign", ["\U0001d160", "\U0001f98a", "é", '"', "k"])  # the first has three in its normal form
async def test_a_key_may_be_long(subject: SourceUnderTest, sign: str) -> None:
    key = sign * 256
    store = await written(subject, [vector_record("a", metadata={key: "x"}), vector_record("b", metadata={key: 2})])
    field = next(each for each in fields(vector_record("a", metadata={key: 1}).record) if each.startswith("metadata."))
    facet = (await store.facets(SCOPE, {field: 3}, VISIBLE))[field]
    assert (facet.values, [each.count for each in facet.ranges]) == ((FacetValue("x", 1),), [1])
    assert (await store.ordered(VISIBLE, SortKey(field), 5)).documents.ids == ("b", "a")


async def test_the_last_moment_of_all_is_counted(subject: SourceUnderTest) -> None:
    """As a double it is in the year 10000."""
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    first = datetime(1, 1, 1, tzinfo=UTC)
    store = await written(subject, [vector_record("a", created_at=last), vector_record("b", created_at=first)])
    for size in (1, 3, 100):
        ranges = (await store.facets(SCOPE, {"created_at": size}, VISIBLE))["created_at"].ranges
        assert sum(each.count for each in ranges) == 2
    only = And((VISIBLE, Range("created_at", gte=datetime(2000, 1, 1, tzinfo=UTC))))
    ranges = (await store.facets(SCOPE, {"created_at": 3}, normal(only)))["created_at"].ranges
    assert [(each.lt, each.count) for each in ranges] == [(None, 1)]


def test_terms_are_ordered_as_their_values_are() -> None:
    terms = [value_term("k", value) for value in (False, True, -1e308, -1, 0, 2.5, 2**53 + 1, "", "A", "a", "ä")]
    assert terms == sorted(terms)
