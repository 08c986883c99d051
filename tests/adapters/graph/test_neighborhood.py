"""What is around a document: the same on an embedded index and on a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adapters import Link, Scope, Viewer
from adapters.graph.embedded import EmbeddedGraph
from adapters.graph.memgraph import MemgraphGraph
from adapters.model.filter import access, normal
from adapters.ports.graph import MentionedName, Neighborhood
from tests.adapters.source_fixtures import SourceUnderTest, source_under_test
from tests.conftest import SCOPE, vector_record

pytestmark = [pytest.mark.anyio, pytest.mark.server]

RECORDS = [
    vector_record("a", "one", entities=("Vega", "Sirius", "Rigel"), links=(Link("b", "cites"), Link("gone", "cites"))),
    vector_record("b", "two", entities=("Vega",), links=(Link("a", "part_of"),)),
    vector_record("c", "three", entities=("Sirius", "Vega"), links=(Link("a", "about"), Link("a", "about"))),
    vector_record("hidden", "four", sensitivity="restricted", entities=("Rigel",), links=(Link("a", "cites"),)),
    vector_record("alone", "five", entities=()),
]


async def around(subject: SourceUnderTest, id_: str, scope: Scope = SCOPE, limit: int = 10) -> Neighborhood:
    graph = subject.source
    assert isinstance(graph, EmbeddedGraph | MemgraphGraph)
    return await graph.neighborhood(scope, id_, normal(access(scope, Viewer("normal"))), limit)


@pytest.mark.parametrize("name", ["embedded graph", "memgraph"])
async def test_linked_documents_and_names(name: str, tmp_path: Path, server_url: Callable[[str], str]) -> None:
    """Links count in both directions, also where walks follow one only; nothing is known of hidden documents."""
    async with source_under_test(name, tmp_path, server_url) as subject:
        await subject.write(RECORDS)
        found = await around(subject, "a")
        assert (list(found.linked), found.linked_count) == (["b", "c"], 2)
        assert [(each.name, each.documents, list(each.examples)) for each in found.names] == [
            ("rigel", 1, ["a"]),
            ("sirius", 2, ["a", "c"]),
            ("vega", 3, ["a", "b", "c"]),
        ]
        limited = await around(subject, "a", limit=1)
        assert (list(limited.linked), limited.linked_count) == (["b"], 2)
        assert (limited.names, limited.name_count) == ([MentionedName("rigel", 1, ["a"])], 3)
        assert list((await around(subject, "b")).linked) == ["a"]
        for nothing in (await around(subject, "alone"), await around(subject, "none"), await around(subject, "gone")):
            assert nothing.linked_count == 0
            assert not nothing.names
        other = Scope("other", SCOPE.environment)
        assert not (await around(subject, "a", other)).names


@pytest.mark.parametrize("name", ["embedded graph", "memgraph"])
async def test_names_in_very_many_documents_are_left_out(
    name: str, tmp_path: Path, server_url: Callable[[str], str]
) -> None:
    records = [vector_record(f"d{number}", "text", entities=("Vega", f"N{number // 2}")) for number in range(4_002)]
    async with source_under_test(name, tmp_path, server_url) as subject:
        await subject.write(records)
        assert [each.name for each in (await around(subject, "d0")).names] == ["n0"]
