from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given

from adapters import Document, Record
from adapters.graph.cypher import Clause, clauses, statement
from adapters.model.document import fields
from adapters.model.errors import Rejected
from adapters.model.filter import And, Eq, Filter, In, Not, Or, matches, normal
from adapters.model.index_terms import filter_terms
from tests.adapters.filters import documents, filters


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


def test_list_comprehensions_are_not_part_of_larger_expressions() -> None:
    """The planner of Memgraph 3.2 drops its state of the enclosing expression at one (``PostVisit`` in its
    ``rule_based_planner.cpp``); an assertion then aborts the process. The only argument of a function is allowed."""
    found = 0
    for text in map(statement, ("walk_seeds", "walk_step", "mentions_entity")):
        enclosing: list[str] = []
        for token in re.finditer(r"CALL \{|\w*\(|[\[{(]|[])}]", text):
            if token[0] in ")]}":
                enclosing.pop()
                continue
            if re.match(r"\[\w+ IN ", text[token.start() :]):
                assert not enclosing or enclosing[-1] in {"CALL {", "head("}, text[token.start() :][:80]
                found += 1
            enclosing.append(token[0])
    assert found > 10
