"""The schema of a graph server, created as far as it is missing.

Memgraph locks its storage to create an index or a constraint, also one that exists, while all statements wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapters.graph.bolt import Bolt, Row
from adapters.graph.cypher import schema, statement
from adapters.servers.server import unreadable

_INDEX = re.compile(r"CREATE INDEX ON :(\w+)\((\w+)\)")
_CONSTRAINT = re.compile(r"CREATE CONSTRAINT ON \(\w+:(\w+)\) ASSERT \w+\.(\w+) IS UNIQUE")


async def create_schema(bolt: Bolt) -> None:
    """Create the indexes and constraints that do not exist, each in a transaction of its own.

    :raises AdapterError: if one cannot be created; those before it are.
    """
    dialect = await bolt.dialect()
    statements = schema(dialect)
    if dialect == "memgraph":
        indexes = await bolt.read(statement("memgraph/indexes"), {})
        constraints = await bolt.read(statement("memgraph/constraints"), {})
        statements = list(_missing(statements, indexes, constraints))
    await bolt.change_schema(statements)


async def analyze(bolt: Bolt) -> None:
    """Have Memgraph count the values of its indexes, as its planner needs after many writes. Neo4j does that itself."""
    if await bolt.dialect() == "memgraph":
        await bolt.read(statement("memgraph/analyze"), {}, maintenance=True)


def _missing(statements: Sequence[str], indexes: Sequence[Row], constraints: Sequence[Row]) -> Iterator[str]:
    """The statements whose index or constraint does not exist.

    :param indexes: rows of ``SHOW INDEX INFO``.
    :param constraints: rows of ``SHOW CONSTRAINT INFO``.
    """
    try:
        existing = {("index", *_on(row, "property")) for row in indexes if row["index type"] == "label+property"}
        existing |= {("unique", *_on(row, "properties")) for row in constraints if row["constraint type"] == "unique"}
    except (KeyError, TypeError) as error:
        raise unreadable("the graph server's list of indexes", error) from error
    for each in statements:
        if found := _INDEX.match(each):
            key = ("index", found[1], found[2])
        elif found := _CONSTRAINT.match(each):
            key = ("unique", found[1], found[2])
        else:
            raise ValueError(f"neither an index nor a constraint: {each}")
        if key not in existing:
            yield each


def _on(row: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Label and properties of a row. Releases before 3.2 have one property, later ones a list."""
    properties = row[field]
    return (row["label"], *([properties] if isinstance(properties, str) else properties))
