"""Every statement that is ever sent to a graph server, one a file; where servers differ, in a folder of the dialect.

A filter is put in where a statement says ``{access:d}``: as text that is made here alone, over parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

from adapters.filter import Filter
from adapters.labels import compile_filter

Dialect: TypeAlias = Literal["memgraph", "neo4j"]

_HOLE = re.compile(r"\{(\w+):(\w+)\}")
_COMMENT = re.compile(r"^//.*\n", re.MULTILINE)


@cache
def statement(name: str) -> str:
    """A statement by its file's name, without its comments."""
    text = files(__package__).joinpath(f"{name}.cypher").read_text("utf-8")
    return _COMMENT.sub("", text).strip()


def schema(dialect: Dialect) -> list[str]:
    """What makes the indexes and constraints: to be run one by one, each in a transaction of its own."""
    return [each.strip() for each in statement(f"{dialect}/schema").split(";") if each.strip()]


def filtered(name: str, filters: Mapping[str, Filter]) -> tuple[str, dict[str, Any]]:
    """A statement with its filters put in, and the parameters that these bring along."""
    parameters: dict[str, Any] = {}

    def put_in(hole: re.Match[str]) -> str:
        return compile_filter(filters[hole.group(1)], _Predicates(hole.group(2), parameters))

    return _HOLE.sub(put_in, statement(name)), parameters


class _Predicates:
    """Filters as predicates over the property ``labels`` of a variable."""

    def __init__(self, variable: str, parameters: dict[str, Any]) -> None:
        self._variable = variable
        self._parameters = parameters

    def holds(self, labels: Sequence[str]) -> str:
        name = f"labels{len(self._parameters)}"
        self._parameters[name] = list(labels)
        return f"any(label IN ${name} WHERE label IN {self._variable}.labels)"

    def every(self, parts: Sequence[str]) -> str:
        return f"({' AND '.join(parts)})" if parts else "true"

    def some(self, parts: Sequence[str]) -> str:
        return f"({' OR '.join(parts)})"

    def no(self, part: str) -> str:
        return f"NOT ({part})"
