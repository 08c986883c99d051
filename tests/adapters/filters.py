"""Random documents and filters, for tests of everything that evaluates or compiles filters."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from adapters import Document
from adapters.model.filter import And, Eq, Exists, Filter, In, Not, Or, Range
from adapters.model.filter_values import typed

WHOLE = (2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**63 - 1, 2**63 - 2, -(2**63))
"""Whole numbers; half of them are no doubles."""
NUMBERS = (-2.5, -1.0, 0.0, 1.0, 1.5, 7.0, 1e300, 2.0**53, 2.0**63, *WHOLE)
TEXTS = ("", "a", "b", "A", "1", "true", "é", "naïve\0nul", "日本", "x" * 600)
SCALARS = st.one_of(st.sampled_from(TEXTS), st.sampled_from(NUMBERS), st.booleans())
FIELDS = st.sampled_from(
    [
        "tags",
        "language",
        "collection",
        "importance",
        "chunk_index",
        "created_at",
        "metadata.m",
        "metadata.n",
        "url",
        "owner",
    ]
)
_BOUND = st.one_of(st.none(), st.sampled_from(NUMBERS), st.just(datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC)))

leaves: st.SearchStrategy[Filter] = st.one_of(
    st.builds(Eq, FIELDS, SCALARS),
    st.builds(In, FIELDS, st.lists(SCALARS, max_size=20).map(tuple)),
    st.builds(Range, FIELDS, _BOUND, _BOUND, _BOUND, _BOUND),
    st.builds(Exists, FIELDS),
)


def _combined(conditions: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    return st.recursive(
        conditions,
        lambda inner: st.one_of(
            st.builds(And, st.lists(inner, max_size=3).map(tuple)),
            st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
            st.builds(Not, inner),
        ),
        max_leaves=6,
    )


filters = _combined(leaves)
"""Any filter; many ask a field for a value of a kind that it cannot have."""


def _is_typed(condition: Filter) -> bool:
    try:
        typed(condition)
    except ValueError:
        return False
    return True


typed_filters = _combined(leaves.filter(_is_typed))
"""Filters whose values have the kinds of their fields."""

_metadata = st.dictionaries(
    st.sampled_from(["m", "n"]), st.one_of(SCALARS, st.none(), st.lists(SCALARS, max_size=3)), max_size=2
)


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    """One to eight documents, ids 0, 1, …"""
    return [
        Document(
            id=str(number),
            text="alpha beta",
            tags=tuple(draw(st.lists(st.sampled_from(TEXTS), unique=True, max_size=3))),
            language=draw(st.one_of(st.none(), st.sampled_from(TEXTS))),
            collection=draw(st.sampled_from(["documents", "memory"])),
            importance=draw(st.one_of(st.none(), st.sampled_from([0.0, 1.0, 7.0]))),
            chunk_index=draw(st.one_of(st.none(), st.integers(0, 7))),
            created_at=draw(st.one_of(st.none(), st.just(datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC)))),
            metadata=draw(_metadata),
            owner=draw(st.one_of(st.none(), st.sampled_from(["a", "A", "1", "true", "é", "日本"]))),
        )
        for number in range(draw(st.integers(1, 8)))
    ]
