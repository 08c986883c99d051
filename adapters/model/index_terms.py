"""Filters for any index that can look a term up: every filterable value is one term, every filter is a query for terms.

A term is ``field NUL kind value``. A number is written as 19 hexadecimal digits whose order is the order of the
numbers, and every prefix of those digits is a term too, so that a range of numbers is a few hundred terms at most (a
trie, as in Schindler, Diepenbroek: "Generic XML-based framework for metadata portals", 2008).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol, TypeVar, assert_never

import msgspec
from cachetools import LRUCache

from adapters.model.document import METADATA, Scalar
from adapters.model.filter import And, Eq, Exists, Filter, In, Not, Or, Range, kind, seconds
from adapters.model.numbers import DIGITS, of_sortable, sortable

MAX_TEXT_CHARS = 512
"""A longer text is replaced in a term by a NUL and its hash."""
NUMBER_TERMS = DIGITS
"""Terms of a number: one for each of its digits."""
_MAX_COMPILED = 64
"""Number of cached queries of each source: most filters are those of a principal alone."""
_MAX_CACHED_BYTES = 1_024
"""Maximum size of a filter, as JSON, whose query is cached. A larger one may compile to megabytes."""
_MAX_NAME_BYTES = 512
_SCOPE = frozenset({"tenant", "environment"})
_UNUSED_TERM = ""
"""A term that no document has."""

T = TypeVar("T")


def filter_terms(fields: Mapping[str, tuple[Scalar, ...]]) -> list[str]:
    """The terms of one document's fields, sorted."""
    terms = {_presence(name) for name in fields}
    for name, values in fields.items():
        for value in values:
            term = value_term(name, value)
            terms.add(term)
            if kind(value) == "number":
                terms.update(term[:-digits] for digits in range(1, NUMBER_TERMS))
    return sorted(terms)


def value_terms(fields: Mapping[str, tuple[Scalar, ...]]) -> list[str]:
    """One term for each value of one document's fields, without those of its scope; see :func:`column_name`."""
    named = {column_name(name): values for name, values in fields.items() if name not in _SCOPE}
    listed = ((name, value) for name, values in named.items() for value in values)
    return sorted({value_term(name, value) for name, value in listed})


def column_name(field: str) -> str:
    """The name of a field in :func:`value_terms`: of a long one its hash, because patterns of names have a limit."""
    return (
        field if len(field.encode()) <= _MAX_NAME_BYTES else f"{METADATA}{hashlib.sha256(field.encode()).hexdigest()}"
    )


class FilterCompiler(Protocol[T]):
    """The queries of one source: how terms are looked up, and how queries are combined. Any filter compiles to them."""

    def any_term(self, terms: Sequence[str]) -> T:
        """The document has at least one of these terms, of which there is at least one."""
        ...

    def all_of(self, queries: Sequence[T]) -> T:
        """All of these match; true if there are none."""
        ...

    def any_of(self, queries: Sequence[T]) -> T:
        """At least one of these matches; there is at least one."""
        ...

    def negate(self, query: T) -> T:
        """This does not match."""
        ...


def filter_compiler(compiler: FilterCompiler[T]) -> Callable[[Filter], T]:
    """:func:`compile_filter` for one source. Recent queries are cached: callers must not change them."""
    compiled: LRUCache[bytes, T] = LRUCache(_MAX_COMPILED)

    def compile_cached(condition: Filter) -> T:
        key = msgspec.json.encode(condition)  # and not the filter: in Python 1.0 == True
        query = compiled.get(key)
        if query is None:
            query = compile_filter(condition, compiler)
            if len(key) <= _MAX_CACHED_BYTES:
                compiled[key] = query
        return query

    return compile_cached


def compile_filter(condition: Filter, compiler: FilterCompiler[T]) -> T:
    """A filter in normal form as a query of a source."""
    match condition:
        case Eq(field, value):
            return compiler.any_term([value_term(field, value)])
        case In(field, values) if values:
            return compiler.any_term([value_term(field, value) for value in values])
        case Range(field) if prefixes := _covering_prefixes(condition):
            return compiler.any_term([f"{field}\0n{prefix}" for prefix in prefixes])
        case In() | Range() | Or(()):
            return compiler.any_term([_UNUSED_TERM])
        case Exists(field):
            return compiler.any_term([_presence(field)])
        case And(filters):
            return compiler.all_of([compile_filter(each, compiler) for each in filters])
        case Or(filters):
            return compiler.any_of([compile_filter(each, compiler) for each in filters])
        case Not(inner):
            return compiler.negate(compile_filter(inner, compiler))
        case _:
            assert_never(condition)


def max_terms(condition: Filter) -> int:
    """The number of terms that a filter in normal form compiles to, or more."""
    match condition:
        case In(_, values):
            return len(values)
        case Range():
            return 2 * 15 * NUMBER_TERMS
        case And(filters) | Or(filters):
            return sum(map(max_terms, filters))
        case Not(inner):
            return max_terms(inner)
        case _:
            return 1


def _covering_prefixes(bounds: Range) -> Sequence[str]:
    """The fewest prefixes of written numbers that cover all numbers within the bounds, and no other."""
    low, high = 0, 2 ** (4 * NUMBER_TERMS) - 1
    if bounds.gte is not None:
        low = max(low, sortable(seconds(bounds.gte)))
    if bounds.gt is not None:
        low = max(low, sortable(seconds(bounds.gt)) + 1)
    if bounds.lte is not None:
        high = min(high, sortable(seconds(bounds.lte)))
    if bounds.lt is not None:
        high = min(high, sortable(seconds(bounds.lt)) - 1)
    return _prefixes_between(low, high)


@lru_cache(maxsize=256)
def _prefixes_between(low: int, high: int) -> Sequence[str]:
    """The prefixes, cached because each source compiles a range once for each collection."""
    prefixes: list[str] = []
    digits = NUMBER_TERMS
    while low <= high:
        next_low, next_high = -(-low // 16), (high + 1) // 16 - 1
        if digits == 1 or next_low > next_high:
            prefixes += [f"{number:0{digits}x}" for number in range(low, high + 1)]
            break
        ends = (*range(low, 16 * next_low), *range(16 * (next_high + 1), high + 1))
        prefixes += [f"{number:0{digits}x}" for number in ends]
        low, high, digits = next_low, next_high, digits - 1
    return prefixes


def value_term(field: str, value: Scalar) -> str:
    """The term of one value. The terms of a field are ordered as truth values, numbers, texts."""
    match value:
        case bool():
            return f"{field}\0b{int(value)}"
        case str():
            if len(value) > MAX_TEXT_CHARS:
                value = "\0" + hashlib.sha256(value.encode()).hexdigest()
            return f"{field}\0t{value}"
        case _:
            return f"{field}\0n{sortable(value):0{NUMBER_TERMS}x}"


def term_value(term: str) -> bool | float | str:
    """The value of a term; of a long text its hash, of a number beyond ``2 ** 53`` the largest double below it.

    :raises ValueError: if it is not the term of a value.
    """
    _, _, written = term.partition("\0")
    kind_, value = written[:1], written[1:]
    match kind_:
        case "b":
            return bool(int(value))
        case "n":
            return of_sortable(int(value, 16))
        case "t":
            return value
        case _:
            raise ValueError("not the term of a value")


def is_short(value: Scalar) -> bool:
    """Whether a term has a value itself, and not its hash; also of a value of :func:`term_value`."""
    return not (isinstance(value, str) and (len(value) > MAX_TEXT_CHARS or value.startswith("\0")))


def _presence(field: str) -> str:
    return f"{field}\0e"
