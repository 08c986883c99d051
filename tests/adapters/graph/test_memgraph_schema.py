"""What Memgraph is asked to create. Its rows are those of its source (``DatabaseInfoQuery`` in
``src/query/interpreter.cpp``)."""

from __future__ import annotations

from typing import Any

import pytest

from adapters import BadResponse
from adapters.graph.bolt import Bolt
from adapters.graph.cypher import schema
from adapters.graph.memgraph_schema import analyze, create_schema
from adapters.servers.server import GRAPH_SCHEMES, Address, Limits
from tests.servers.bolt_stub import graph_server, memgraph
from tests.servers.stub import Serve, stub

pytestmark = pytest.mark.anyio

Rows = list[dict[str, Any]]
INDEXES: Rows = [
    {"index type": "label+property", "label": "Document", "property": ["key"], "count": 7},
    {"index type": "label+property", "label": "Document", "property": ["index"], "count": 7},
    {"index type": "label+property", "label": "Name", "property": "key", "count": 0},
    {"index type": "label+property", "label": "Word", "property": ["other", "key"], "count": 0},
    {"index type": "label", "label": "Scope", "property": None, "count": 0},
    {"index type": "edge-type", "label": "LINKS", "property": None, "count": 0},
]
CONSTRAINTS: Rows = [
    {"constraint type": "unique", "label": "Document", "properties": ["key"], "data_type": ""},
    {"constraint type": "exists", "label": "Name", "properties": "key", "data_type": ""},
]


async def run(serve: Serve, call: Any) -> None:
    async with stub(serve) as port:
        bolt = Bolt(Address.parse(f"bolt://127.0.0.1:{port}", GRAPH_SCHEMES), Limits(2.0, 2.0, 2))
        try:
            await call(bolt)
        finally:
            await bolt.close()


async def test_only_what_is_missing_is_created() -> None:
    statements: list[str] = []
    await run(memgraph({"SHOW INDEX INFO": INDEXES, "SHOW CONSTRAINT INFO": CONSTRAINTS}, statements), create_schema)
    asked, sent = statements[:2], statements[2:]
    assert asked == ["SHOW INDEX INFO", "SHOW CONSTRAINT INFO"]
    exist = ("CREATE INDEX ON :Document(", "CREATE INDEX ON :Name(", "CREATE CONSTRAINT ON (d:Document)")
    assert sent == [each for each in schema("memgraph") if not each.startswith(exist)]
    assert len(sent) == len(schema("memgraph")) - 4


async def test_all_is_created_where_nothing_exists() -> None:
    statements: list[str] = []
    await run(memgraph({}, statements), create_schema)
    assert statements[2:] == schema("memgraph")


async def test_a_list_of_indexes_that_is_none_is_no_reason_to_create_them() -> None:
    statements: list[str] = []
    with pytest.raises(BadResponse, match="list of indexes"):
        await run(memgraph({"SHOW INDEX INFO": [{"index type": "label+property"}]}, statements), create_schema)
    assert len(statements) == 2


async def test_memgraph_counts_the_values_of_its_indexes_and_neo4j_is_not_asked_to() -> None:
    statements: list[str] = []
    await run(memgraph({}, statements), analyze)
    assert statements == ["ANALYZE GRAPH"]
    await run(graph_server([]), analyze)
