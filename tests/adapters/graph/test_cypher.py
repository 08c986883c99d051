from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given

from adapters import Document, Record
from adapters.graph import cypher
from adapters.graph.cypher import Clause, clauses, schema, statement
from adapters.model.document import fields
from adapters.model.errors import Rejected
from adapters.model.filter import And, Eq, Filter, In, Not, Or, matches, normal
from adapters.model.index_terms import filter_terms
from tests.adapters.filters import documents, filters
from tests.adapters.graph.memgraph_rules import indexes, problems


def passes(clauses_: Sequence[Clause], terms: Sequence[str]) -> bool:
    """The predicate of the statements, in Python."""
    return all(
        not set(terms).isdisjoint(clause["has"]) or any(set(terms).isdisjoint(absent) for absent in clause["lacks"])
        for clause in clauses_
    )


@given(documents(), filters)
def test_the_clauses_of_a_filter_agree_with_its_definition(corpus: list[Document], condition: Filter) -> None:
    compiled = clauses(normal(condition))
    for document in corpus:
        values = fields(Record("t", "e", document))
        assert passes(compiled, filter_terms(values)) == matches(condition, values)


def test_a_filter_with_too_many_terms_is_refused() -> None:
    pairs = [And((Eq("tags", f"a{number}"), Not(Eq("tags", f"b{number}")))) for number in range(11)]
    assert len(clauses(normal(Or(tuple(pairs[:10]))))) == 2**10
    with pytest.raises(Rejected, match="22528 terms in conjunctive normal form, allowed are 20000"):
        clauses(normal(Or(tuple(pairs))))


def test_the_terms_of_all_conditions_count() -> None:
    values = [In("tags", tuple(f"{number}-{value}" for value in range(9_000))) for number in range(3)]
    assert len(clauses(normal(And(tuple(values[:2]))))) == 2
    with pytest.raises(Rejected, match="27000 terms"):
        clauses(normal(And(tuple(values))))


def test_the_text_of_a_statement_contains_no_value() -> None:
    text = statement("walk_step")
    assert "$access" in text
    assert "$filter" in text
    assert not re.search(r"\{\w*\}|<\w", text)


INDEXED = indexes(statement("memgraph/schema"))
FOLDER = Path(cypher.__file__).parent
OWN = sorted(
    str(path.relative_to(FOLDER).with_suffix(""))
    for folder in (FOLDER, FOLDER / "memgraph")
    for path in folder.glob("*.cypher")
)
BAD = {
    "MATCH (n:Name) WHERE n.key IN $keys RETURN n": "no index is used for",
    "MATCH (n:Name {name: $name}) RETURN n": "no index on :Name(name)",
    "MERGE (s:Shelf {key: $key}) SET s.size = 1": "no index on :Shelf(key)",
    "MATCH p = shortestPath((a:Name {key: 1})-[*]-(b)) RETURN p": "shortestPath",
    "MATCH p = allShortestPaths((a:Name {key: 1})-[*]-(b)) RETURN p": "shortestPath",
    "MATCH (a:Name {key: 1}) ((b)-[:LINKS]->(c)){1,3} (d) RETURN d": "a quantified path",
    "MATCH (n:Name&Word) RETURN n": "a label expression",
    "CREATE FULLTEXT INDEX texts FOR (n:Document) ON EACH [n.text]": "a full-text index",
    "MATCH (n:Name {key: 1}) USING INDEX n:Name(key) RETURN n": "a hint of Neo4j",
    "CREATE VECTOR INDEX v FOR (d:Document) ON d.vector OPTIONS {indexConfig: {}}": "a vector index of Neo4j",
    "CREATE INDEX names IF NOT EXISTS FOR (n:Name) ON (n.key)": "an index in the form of Neo4j",
    "CREATE CONSTRAINT FOR (n:Name) REQUIRE n.key IS UNIQUE": "a constraint in the form of Neo4j",
    "MATCH (n:Name {key: 1}) WHERE EXISTS { (n)-[:LINKS]->() } RETURN n": "a subquery as an expression",
    "MATCH (n:Name {key: 1}) CALL (n) { RETURN 1 AS one } RETURN one": "a subquery with a list of variables",
    "MATCH (n:Name {key: 1}) RETURN elementId(n)": "elementId",
    "MATCH (n:Name {key: 1}) USING HOPS LIMIT $hops RETURN n": "no parameter is allowed in HOPS LIMIT",
    "MATCH (n:Name {key: 1}) RETURN n QUERY MEMORY LIMIT $limit": "no parameter is allowed in QUERY MEMORY LIMIT",
    "MATCH (n:$label) RETURN n": "no parameter is allowed in a label or type",
    "CREATE INDEX ON :Name($property)": "no parameter is allowed in a definition of the schema",
    "UNWIND $keys AS key WHERE key > 1 RETURN key": "WHERE after UNWIND",
    "MATCH (n:Name {key: 1}) ORDER BY n.key RETURN n": "ORDER BY after MATCH",
    "MATCH (n:Name {key: 1}) LIMIT 1 RETURN n": "LIMIT after MATCH",
    "MATCH (n:Name {key: 1}) RETURN n MATCH (m:Name {key: 2}) RETURN m": "MATCH after RETURN",
    "MATCH (n:Name {key: 1}) SET n.degree = 1 MATCH (m:Name {key: 2}) RETURN m": "MATCH after SET without WITH",
    "MATCH (n:Name {key: 1}) ON CREATE SET n.degree = 1": "ON CREATE SET after MATCH",
    "MATCH (n:Name {key: 1}) OPTIONAL MATCH (n)-[:LINKS]->(m) MATCH (m) RETURN m": "(m) is bound",
    "MATCH (n:Name {key: 1}) WITH n AS m MATCH (m) RETURN m": "(m) is bound",
    "MATCH (n:Name {key: 1}) WITH n " * 9 + "RETURN n": "19 clauses and 9 patterns",
    "UNWIND $rows AS row WITH row " * 40 + "RETURN row": "81 clauses and 0 patterns",
    "WITH [[1]] AS rows RETURN [a IN rows | [b IN a | b]] AS all": "a list comprehension in an expression",
    "WITH [1] AS rows RETURN 1 + size([a IN rows | a] + rows) AS size": "a list comprehension in an expression",
}


@pytest.mark.parametrize("name", OWN)
def test_memgraph_supports_every_statement(name: str) -> None:
    for each in schema("memgraph") if name == "memgraph/schema" else [statement(name)]:
        assert problems(each, INDEXED) == []


@pytest.mark.parametrize(("bad", "problem"), BAD.items())
def test_what_memgraph_does_not_support_is_found(bad: str, problem: str) -> None:
    assert any(problem in each for each in problems(bad, INDEXED)), problems(bad, INDEXED)


def test_the_schemas_of_both_products_index_the_same() -> None:
    """Neo4j has an index for each constraint, Memgraph has none."""
    assert {
        *re.findall(r"FOR \(\w+:(\w+)\) (?:ON \(|REQUIRE )\w+\.(\w+)", statement("neo4j/schema")),
    } == INDEXED
