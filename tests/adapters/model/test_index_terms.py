from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from adapters import Document, Record
from adapters.model import index_terms as filter_terms_module
from adapters.model.document import fields
from adapters.model.filter import And, Eq, Exists, Filter, In, Not, Or, Range, matches, normal
from adapters.model.index_terms import compile_filter, filter_compiler, filter_terms
from tests.adapters.filters import documents, filters

Predicate = Callable[[frozenset[str]], bool]
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
"""JSON has neither NaN nor infinities, so no document or filter has them."""


class Predicates:
    """Compiles filters to functions of a document's terms: the smallest source."""

    def any_term(self, terms: Sequence[str]) -> Predicate:
        assert terms, "the protocol promises at least one term"
        return lambda found: not found.isdisjoint(terms)

    def all_of(self, queries: Sequence[Predicate]) -> Predicate:
        return lambda found: all(query(found) for query in queries)

    def any_of(self, queries: Sequence[Predicate]) -> Predicate:
        assert queries, "the protocol promises at least one query"
        return lambda found: any(query(found) for query in queries)

    def negate(self, query: Predicate) -> Predicate:
        return lambda found: not query(found)


def passes(condition: Filter, values: dict[str, tuple[str | float | bool, ...]]) -> bool:
    return compile_filter(normal(condition), Predicates())(frozenset(filter_terms(values)))


class CountingPredicates(Predicates):
    """Records the number of terms of each lookup."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def any_term(self, terms: Sequence[str]) -> Predicate:
        self.counts.append(len(terms))
        return super().any_term(terms)


@given(documents(), filters)
def test_a_compiled_filter_agrees_with_its_definition(corpus: list[Document], condition: Filter) -> None:
    for document in corpus:
        values = fields(Record("t", "e", document))
        assert passes(condition, values) == matches(condition, values)


@given(NUMBERS, st.none() | NUMBERS, st.none() | NUMBERS, st.none() | NUMBERS, st.none() | NUMBERS)
def test_a_range_covers_exactly_the_numbers_within_its_bounds(
    value: float, gt: float | None, gte: float | None, lt: float | None, lte: float | None
) -> None:
    condition = Range("n", gt, gte, lt, lte)
    assert passes(condition, {"n": (value,)}) == matches(condition, {"n": (value,)})


@given(NUMBERS)
def test_a_bound_is_exact_to_the_last_bit(bound: float) -> None:
    above, below = math.nextafter(bound, math.inf), math.nextafter(bound, -math.inf)
    for value in (below, bound, above):
        assert passes(Range("n", gte=bound), {"n": (value,)}) == (value >= bound)
        assert passes(Range("n", gt=bound), {"n": (value,)}) == (value > bound)
        assert passes(Range("n", lte=bound), {"n": (value,)}) == (value <= bound)
        assert passes(Range("n", lt=bound), {"n": (value,)}) == (value < bound)


@given(NUMBERS, NUMBERS)
def test_the_terms_of_numbers_sort_as_the_numbers(one: float, other: float) -> None:
    """The longest term of a field is the whole number."""
    first, second = (max(filter_terms({"n": (value,)}), key=len) for value in (one, other))
    assert (first < second) == (one < other)
    assert (first == second) == (one == other)


@given(NUMBERS, NUMBERS)
def test_a_range_is_few_terms(one: float, other: float) -> None:
    """At most 15 prefixes at each of the 16 digits of both ends."""
    counting = CountingPredicates()
    compile_filter(Range("n", gte=min(one, other), lte=max(one, other)), counting)
    assert counting.counts[0] <= 2 * 15 * 16


@given(st.text(), st.text())
def test_different_texts_have_different_terms(one: str, other: str) -> None:
    assert (filter_terms({"f": (one,)}) == filter_terms({"f": (other,)})) == (one == other)


@given(st.text(min_size=600, max_size=2_000))
def test_terms_are_short_however_long_the_text(text: str) -> None:
    assert max(map(len, filter_terms({"f": (text,)}))) < 600
    assert passes(Eq("f", text), {"f": (text,)})
    assert not passes(Eq("f", text + "x"), {"f": (text,)})


def test_the_terms_of_a_document() -> None:
    """1.0 has the bits 3ff0…; with the sign bit flipped, bff0… and a rest of 000. Each of its prefixes is a term."""
    terms = filter_terms({"b": (True,), "n": (1.0,), "t": ("x",)})
    number = "n\0nbff0000000000000000"
    assert terms == sorted(["b\0e", "n\0e", "t\0e", "b\0b1", "t\0tx", *(number[:end] for end in range(4, 23))])


def test_filters_that_nothing_passes_need_no_empty_lookup() -> None:
    for condition in (In("f", ()), Range("n", gt=2.0, lt=1.0), Or(())):
        assert not compile_filter(condition, Predicates())(frozenset(filter_terms({"f": ("x",), "n": (1.5,)})))
    assert compile_filter(And(()), Predicates())(frozenset())
    assert compile_filter(Not(Exists("f")), Predicates())(frozenset(filter_terms({"n": (1.0,)})))


@given(NUMBERS, NUMBERS)
def test_the_prefixes_of_a_range_do_not_overlap_and_are_few(one: float, other: float) -> None:
    compiled = CountingPredicates()
    compile_filter(Range("f", gte=min(one, other), lte=max(one, other)), compiled)
    assert compiled.counts[0] <= 15 * 2 * 15 + 16


def test_a_range_is_compiled_once_for_all_collections_and_backends() -> None:
    filter_terms_module._prefixes_between.cache_clear()
    ranges = Or(tuple(Range("metadata.n", gte=n + 0.1, lt=n * 1e6 + 0.7) for n in range(1, 64)))
    for collection in "abcd":
        for _ in range(3):
            compile_filter(normal(And((ranges, Eq("collection", collection)))), Predicates())
    cached = filter_terms_module._prefixes_between.cache_info()
    assert (cached.misses, cached.hits) == (63, 63 * 11)


def test_only_small_filters_are_cached() -> None:
    """Compiled, a filter of a kilobyte may have a hundred kilobytes."""
    compiled: list[object] = []

    class Recording(Predicates):
        def any_of(self, queries: Sequence[Predicate]) -> Predicate:
            compiled.append(queries)
            return super().any_of(queries)

    compiler = filter_compiler(Recording())
    small, large = (
        normal(Or(tuple(Range("metadata.n", gte=n, lt=n + 0.5) for n in range(count)))) for count in (4, 60)
    )
    for _ in range(3):
        compiler(small)
        compiler(large)
    assert len(compiled) == 1 + 3
