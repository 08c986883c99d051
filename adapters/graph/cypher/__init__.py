"""The statements that are sent to graph servers, one for each file; those of one dialect are in a folder of its own.

``{name}`` in a file is replaced by the fragment of that name, ``{name:value}`` by the fragment with ``value`` for its
``{argument}``. No fragment contains another.

The text of a statement never depends on a request: planning a new text costs the server more than running a hundred
texts that it has cached. So filters are parameters, made by :func:`clauses`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias, TypedDict

from adapters.model.errors import Rejected
from adapters.model.filter import Filter
from adapters.model.index_terms import filter_compiler

Dialect: TypeAlias = Literal["memgraph", "neo4j"]


class Clause(TypedDict):
    """A document passes if it has a term of ``has``, or if there is a list in ``lacks`` of which it has no term."""

    has: list[str]
    lacks: list[list[str]]


_MAX_TERMS = 20_000
"""Maximum number of terms of a filter: they are sent with every search, and compared with every document."""
_FRAGMENT = re.compile(r"\{(\w+)(?::(\w+))?\}")
_COMMENT = re.compile(r"^ *//.*\n", re.MULTILINE)


@cache
def statement(name: str) -> str:
    """A statement by the name of its file, without comments, and with its fragments."""
    return _text(name)


def _text(name: str, argument: str = "") -> str:
    text = files(__package__).joinpath(f"{name}.cypher").read_text("utf-8")
    text = _COMMENT.sub("", text).strip().replace("{argument}", argument)
    return _FRAGMENT.sub(lambda found: _text(f"fragments/{found[1]}", found[2] or ""), text)


def schema(dialect: Dialect) -> list[str]:
    """The statements that create indexes and constraints. Each has to run in a transaction of its own."""
    return [each.strip() for each in statement(f"{dialect}/schema").split(";") if each.strip()]


def clauses(condition: Filter) -> list[Clause]:
    """A filter in normal form as the value of a parameter: clauses of which a document has to pass all.

    :raises Rejected: if these have more than 20,000 terms.
    """
    return _compile(condition)


class _Clauses:
    """Compiles filters to conjunctive normal form."""

    def any_term(self, terms: Sequence[str]) -> list[Clause]:
        return [{"has": list(terms), "lacks": []}]

    def all_of(self, queries: Sequence[list[Clause]]) -> list[Clause]:
        combined = [clause for query in queries for clause in query]
        _check_size(_term_count(combined))
        return combined

    def any_of(self, queries: Sequence[list[Clause]]) -> list[Clause]:
        """Returns each combination of one clause of each query (distributive law)."""
        combined, *others = queries
        for query in others:
            _check_size(_term_count(combined) * len(query) + _term_count(query) * len(combined))
            combined = [_either(one, other) for one in combined for other in query]
        return combined

    def negate(self, query: list[Clause]) -> list[Clause]:
        """Returns the negation (De Morgan's laws)."""
        return self.any_of([_negated(clause) for clause in query]) if query else [{"has": [], "lacks": []}]


def _check_size(terms: int) -> None:
    if terms > _MAX_TERMS:
        raise Rejected(f"the filter has {terms} terms in conjunctive normal form, allowed are {_MAX_TERMS}")


def _term_count(query: Sequence[Clause]) -> int:
    return sum(len(clause["has"]) + sum(map(len, clause["lacks"])) for clause in query)


def _either(one: Clause, other: Clause) -> Clause:
    return {"has": one["has"] + other["has"], "lacks": one["lacks"] + other["lacks"]}


def _negated(clause: Clause) -> list[Clause]:
    lacks: list[Clause] = [{"has": [], "lacks": [clause["has"]]}] if clause["has"] else []
    return lacks + [{"has": terms, "lacks": []} for terms in clause["lacks"]]


_compile = filter_compiler(_Clauses())
