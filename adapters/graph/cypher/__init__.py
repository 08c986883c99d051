"""The statements that are sent to graph servers, one a file; those that differ by dialect in a folder for each.

``{access:d}`` in a statement is replaced by a predicate for the filter ``access`` on the variable ``d``. The text of
the predicate is generated here; values are always passed as parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

from adapters.filter import Filter
from adapters.filter_terms import compile_filter

Dialect: TypeAlias = Literal["memgraph", "neo4j"]

_PLACEHOLDER = re.compile(r"\{(\w+):(\w+)\}")
_COMMENT = re.compile(r"^//.*\n", re.MULTILINE)


@cache
def statement(name: str) -> str:
    """A statement by the name of its file, without comments."""
    text = files(__package__).joinpath(f"{name}.cypher").read_text("utf-8")
    return _COMMENT.sub("", text).strip()


def schema(dialect: Dialect) -> list[str]:
    """The statements that create indexes and constraints. Each has to run in a transaction of its own."""
    return [each.strip() for each in statement(f"{dialect}/schema").split(";") if each.strip()]


def filtered(name: str, filters: Mapping[str, Filter]) -> tuple[str, dict[str, Any]]:
    """A statement with predicates for its filters, and their parameters.

    :param filters: in normal form, by the name of the placeholder.
    """
    parameters: dict[str, Any] = {}

    def predicate(placeholder: re.Match[str]) -> str:
        return compile_filter(filters[placeholder.group(1)], _Predicates(placeholder.group(2), parameters))

    return _PLACEHOLDER.sub(predicate, statement(name)), parameters


class _Predicates:
    """Compiles filters to predicates on the property of filter terms of a variable."""

    def __init__(self, variable: str, parameters: dict[str, Any]) -> None:
        self._variable = variable
        self._parameters = parameters

    def any_term(self, terms: Sequence[str]) -> str:
        name = f"terms{len(self._parameters)}"
        self._parameters[name] = list(terms)
        return f"any(term IN ${name} WHERE term IN {self._variable}.labels)"

    def all_of(self, queries: Sequence[str]) -> str:
        return f"({' AND '.join(queries)})" if queries else "true"

    def any_of(self, queries: Sequence[str]) -> str:
        return f"({' OR '.join(queries)})"

    def negate(self, query: str) -> str:
        return f"NOT ({query})"
