"""What Memgraph does not support, or does slowly, of the Cypher that Neo4j accepts. No Memgraph server can be had here.

Sources: Memgraph's documentation of its differences from Neo4j, its changelog to 3.14, and the reports of its issues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

Indexed = Set[tuple[str, str]]
"""Labels and properties that have an index."""

_MAX_CLAUSES, _MAX_PATTERNS = 80, 8
"""Of a statement: the planner tries up to 1,000 plans, and does it again after each start of the server."""

_TOKEN = re.compile(
    r"CALL \{|[{([]|[])}]|\b(?:OPTIONAL MATCH|MATCH|UNWIND|(?<!STARTS )(?<!ENDS )WITH|WHERE|ORDER BY|SKIP|LIMIT|RETURN"
    r"|UNION ALL|UNION|MERGE|CREATE|ON CREATE SET|ON MATCH SET|SET|REMOVE|DETACH DELETE|DELETE|YIELD|CALL)\b"
)
_AFTER = {
    "WHERE": {"MATCH", "OPTIONAL MATCH", "WITH", "YIELD", "ORDER BY", "SKIP", "LIMIT"},
    "ORDER BY": {"WITH", "RETURN"},
    "SKIP": {"WITH", "RETURN", "ORDER BY"},
    "LIMIT": {"WITH", "RETURN", "ORDER BY", "SKIP"},
    "ON CREATE SET": {"MERGE", "ON MATCH SET"},
    "ON MATCH SET": {"MERGE", "ON CREATE SET"},
    "YIELD": {"CALL"},
}
"""The clauses that another one may follow directly."""
_READING, _WRITING = (
    {"MATCH", "OPTIONAL MATCH", "UNWIND", "CALL"},
    {"SET", "MERGE", "CREATE", "DELETE", "DETACH DELETE"},
)
_UNSUPPORTED = {
    r"\b(?:shortestPath|allShortestPaths)\s*\(": "shortestPath",
    r"\)\s*(?:\{\d*,\d*\}|\+)\s*\(": "a quantified path",
    r"\(\w*:\w+[&|!]\w*": "a label expression",
    r"\bFULLTEXT INDEX\b": "a full-text index",
    r"\bUSING (?:INDEX|SCAN|JOIN)\b": "a hint of Neo4j",
    r"\bVECTOR INDEX\b[^;]*\bOPTIONS\b": "a vector index of Neo4j",
    r"\bINDEX\s+(?:\w+\s+)?(?:IF NOT EXISTS\s+)?FOR\s*\(": "an index in the form of Neo4j",
    r"\bREQUIRE\b": "a constraint in the form of Neo4j",
    r"\b(?:EXISTS|COUNT|COLLECT)\s*\{": "a subquery as an expression",
    r"\bCALL\s*\(": "a subquery with a list of variables",
    r"\belementId\s*\(": "elementId",
}
_NO_PARAMETER = {
    r"\bHOPS LIMIT \$": "HOPS LIMIT",
    r"\bMEMORY LIMIT \$": "QUERY MEMORY LIMIT",
    r"[(\[]\s*\w*\s*:\s*\$": "a label or type",
    r"\b(?:CREATE|DROP) (?:INDEX|CONSTRAINT)\b[^;]*\$": "a definition of the schema",
}


def problems(statement: str, indexed: Indexed) -> list[str]:
    """What Memgraph would reject, abort at, or run without an index. Empty for a good statement.

    :param statement: without comments.
    """
    return [
        *_unsupported(statement),
        *_look_ups(statement, indexed),
        *_order(statement),
        *_bare_patterns(statement),
        *_comprehensions(statement),
        *_size(statement),
    ]


def indexes(schema: str) -> set[tuple[str, str]]:
    """The labels and properties with an index in a schema of Memgraph. A constraint creates no index."""
    return set(re.findall(r"CREATE INDEX ON :(\w+)\((\w+)\)", schema))


def _unsupported(statement: str) -> Iterator[str]:
    for pattern, name in _UNSUPPORTED.items():
        if re.search(pattern, statement):
            yield f"not supported: {name}"
    for pattern, name in _NO_PARAMETER.items():
        if re.search(pattern, statement):
            yield f"no parameter is allowed in {name}"


def _look_ups(statement: str, indexed: Indexed) -> Iterator[str]:
    if found := re.search(r"\b\w+\.\w+ IN \$\w+", statement):
        yield f"no index is used for {found[0]!r}: UNWIND the parameter"
    for clause, body in _clauses(statement):
        if clause in {"MATCH", "OPTIONAL MATCH", "MERGE"}:
            for label, properties in re.findall(r"\(\w*:(\w+)\s*\{([^}]*)\}", body):
                names = re.findall(r"(\w+)\s*:", properties)
                if not any((label, name) in indexed for name in names):
                    yield f"no index on :{label}({', '.join(names)})"


def _order(statement: str) -> Iterator[str]:
    before: list[str] = []
    last = ""
    for clause, _ in _clauses(statement):
        if clause == "{":
            before.append(last)
            last = ""
        elif clause == "}":
            last = before.pop()
        else:
            if clause in _AFTER and last not in _AFTER[clause]:
                yield f"{clause} after {last or 'nothing'}"
            if last == "RETURN" and clause not in {"ORDER BY", "SKIP", "LIMIT", "UNION", "UNION ALL"}:
                yield f"{clause} after RETURN"
            if last in _WRITING and clause in _READING:
                yield f"{clause} after {last} without WITH"
            last = clause


def _bare_patterns(statement: str) -> Iterator[str]:
    """Since 3.14 a pattern that is only a bound variable tests a node: it drops rows of OPTIONAL MATCH."""
    bound: set[str] = set()
    for clause, body in _clauses(statement):
        if clause in {"MATCH", "OPTIONAL MATCH"}:
            bare = re.findall(r"(?<![-\w>])\((\w+)\)(?!\s*[-<])", body)
            yield from (f"({name}) is bound" for name in bare if name in bound)
            bound |= set(re.findall(r"[(\[](\w+)\s*[:)\]]", body))
        bound |= set(re.findall(r"\bAS (\w+)", body))


def _comprehensions(statement: str) -> Iterator[str]:
    """At a list comprehension the planner of Memgraph 3.2 drops its state of the enclosing expression (``PostVisit`` in
    its ``rule_based_planner.cpp``); an assertion then aborts the process. One as the argument of ``head`` is allowed.
    """
    enclosing: list[str] = []
    for token in re.finditer(r"CALL \{|\w*\(|[\[{(]|[])}]", statement):
        if token[0] in ")]}":
            enclosing.pop()
            continue
        if (
            re.match(r"\[\w+ IN ", statement[token.start() :])
            and enclosing
            and enclosing[-1] not in {"CALL {", "head("}
        ):
            yield f"a list comprehension in an expression: {statement[token.start() :][:40]!r}"
        enclosing.append(token[0])


def _size(statement: str) -> Iterator[str]:
    clauses = [clause for clause, _ in _clauses(statement) if clause.isalpha() or " " in clause]
    patterns = sum(clause in {"MATCH", "OPTIONAL MATCH", "MERGE"} for clause in clauses)
    if len(clauses) > _MAX_CLAUSES or patterns > _MAX_PATTERNS:
        yield f"{len(clauses)} clauses and {patterns} patterns, allowed are {_MAX_CLAUSES} and {_MAX_PATTERNS}"


def _clauses(statement: str) -> Iterator[tuple[str, str]]:
    """Each clause and its text; ``{`` and ``}`` around the clauses of a subquery."""
    text = re.sub(r"'[^']*'", "''", statement)
    enclosing: list[str] = []
    found: list[tuple[str, int, int]] = []
    for token in _TOKEN.finditer(text):
        if token[0] == "CALL {":
            found += [("CALL", token.start(), token.start()), ("{", token.start(), token.end())]
            enclosing.append(token[0])
        elif token[0] in "{([":
            enclosing.append(token[0])
        elif token[0] in "])}":
            if enclosing.pop() == "CALL {":
                found.append(("}", token.start(), token.end()))
        elif not enclosing or enclosing[-1] == "CALL {":
            found.append((token[0], token.start(), token.end()))
    ends = [start for _, start, _ in found[1:]] + [len(text)] * bool(found)
    for (clause, _, start), end in zip(found, ends, strict=True):
        yield clause, text[start:end]
