"""Filters of requests: what is refused, and what the largest ones that are allowed become."""

from __future__ import annotations

import msgspec
import pytest

from adapters import Scope
from adapters.keyword.opensearch_documents import compiled
from adapters.model.document import MAX_VALUE_CHARS
from adapters.model.filter import And, Eq, Filter, In, Or, Range, normal
from adapters.model.filter_limits import MAX_NODES, MAX_VALUES, check
from orchestrator.auth.principal import Principal
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.filters import request_filters
from orchestrator.planning.plan_key import _encode
from orchestrator.schema.search import SearchRequest

LONG_FIELD = "metadata." + "\U00010400" * 250
COLLECTIONS = tuple(f"c{number}" for number in range(20))
COSTLY: dict[str, list[Filter]] = {
    "ranges": [Range(f"metadata.{number}", gte=-1.5e9 / 7, lt=2.3e9 / 7) for number in range(200)],
    "ranges of long fields": [Range(f"{LONG_FIELD}{number}", gte=-1.5e9 / 7, lt=2.3e9 / 7) for number in range(200)],
    "long texts": [Eq("metadata.a", f"{number}" + "\x7f" * (MAX_VALUE_CHARS - 10)) for number in range(200)],
    "lists": [In("id", tuple(f"{number} {n} {'x' * 40}" for n in range(MAX_VALUES))) for number in range(9)],
    "lists of numbers": [In("metadata.a", tuple(n + number / 10 for n in range(MAX_VALUES))) for number in range(9)],
    "fields": [Eq(f"{LONG_FIELD}{number}", number) for number in range(300)],
}


def allowed(conditions: list[Filter]) -> int:
    """How many of the conditions a filter may have."""
    for count in range(1, len(conditions) + 1):
        try:
            check(Or(tuple(conditions[:count])))
        except ValueError:
            return count - 1
    return len(conditions)


@pytest.mark.parametrize("kind", COSTLY)
@pytest.mark.parametrize("depth", [0, 13])
def test_the_largest_filter_is_sent_in_a_few_megabytes_and_hashed_in_one(kind: str, depth: int) -> None:
    count = allowed(COSTLY[kind])
    assert 0 < count < len(COSTLY[kind])
    while count:
        condition: Filter = Or(tuple(COSTLY[kind][:count]))
        for level in range(depth):
            condition = (And, Or)[level % 2]((condition, Eq("url", f"{level}")))
        request = SearchRequest(query="x", filter=condition)
        for names in (COLLECTIONS, COLLECTIONS[:4], COLLECTIONS[:1]):
            try:
                filters = request_filters(msgspec.structs.replace(request, collections=names), principal(), ())
            except BadRequest:
                continue
            assert sum(len(msgspec.json.encode(compiled(each))) for each in filters.by_collection) < 5_000_000
            assert len(_encode(filters.by_collection)) < 5_000_000
        count //= 2


def principal() -> Principal:
    return Principal("test", Scope(), "normal")


def test_a_list_of_as_many_ids_as_are_allowed_is_allowed() -> None:
    ids = tuple(f"{number:064x}" for number in range(MAX_VALUES))
    assert check(In("id", ids)) <= MAX_NODES / 3


@pytest.mark.parametrize("condition", [Eq("url", "x" * 8_193), In("tags", ("a", "x" * 8_193))])
def test_a_text_that_is_longer_than_any_that_is_stored_is_refused(condition: Filter) -> None:
    with pytest.raises(ValueError, match="has 8193 characters, allowed are 8192"):
        check(condition)


def test_a_filter_is_refused_before_all_of_its_conditions_are_looked_at() -> None:
    wrong = Eq("no field", "x")
    with pytest.raises(ValueError, match="more than the 256 conditions allowed"):
        check(Or((*[Or(())] * 256, wrong)))


def test_the_normal_form_of_a_filter_is_as_costly_as_the_filter() -> None:
    condition = Or(tuple(COSTLY["ranges"][:60]))
    assert check(normal(condition)) == check(condition)
