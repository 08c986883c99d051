"""Names that the code must not use, because they belong to an earlier vocabulary; ``REPLACED`` says what to write."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("orchestrator", "adapters", "cache", "fusion", "tests", "benchmarks", "docs")

REPLACED_WORDS = {
    "agree": "same_top_document",
    "anew": "recompute",
    "announcing": "invalidating",
    "anybody": "anonymous",
    "ask": "search, retrieve",
    "asked": "request, parameters",
    "asks": "searches",
    "basis": "execution_hash",
    "bump": "increment",
    "catalog": "segment_set",
    "complaint": "describe_decode_error",
    "deaf": "discarding",
    "deciding": "ranking_identity",
    "earn": "deposit",
    "facts": "rank_fields",
    "forsake": "abandon",
    "fresh": "ttl",
    "gone": "deleted, disconnected, unavailable",
    "guard": "graph_trust",
    "halves": "train_test_split",
    "held": "existing, cached, stored",
    "journal": "write_log",
    "judgement": "rerank_result",
    "kept": "cached, stored, retained",
    "keep": "cache, store, retain",
    "keeps": "caches, stores, retains",
    "labels": "filter_terms",
    "lacking": "rejected",
    "ladders": "search_space",
    "lasting": "cacheable",
    "least": "min",
    "library": "embedded_index",
    "lookups": "candidate_names",
    "made": "the name of the thing",
    "most": "max",
    "near": "seed_ids",
    "nobody": "unauthenticated",
    "ours": "caused_by_request",
    "places": "ranks, indexes",
    "priors": "entity_lookup, centrality_reader",
    "remembered": "memoized",
    "road": "source_call",
    "roads": "retrieve",
    "shares": "contributions, fractions",
    "somebody": "caller, client",
    "spared": "failover",
    "spend": "withdraw",
    "stopwatch": "stage_timings",
    "sweep": "truncate",
    "tell": "report",
    "theirs": "over_quota",
    "told": "describe_error, reported",
    "unsound": "warning",
    "verified": "build_checked",
    "wanted": "filter, candidates",
    "whoever": "caller, client",
    "widen": "add_context",
}
"""Words that no name may contain."""

REPLACED_NAMES = {
    "Again": "RetryingRetriever",
    "Answer": "ResponseBody",
    "Answers": "SearchService, ResponseCache",
    "Bad": "InvalidLine",
    "Bounded": "LimitedHttpProtocol",
    "Budget": "RetryBudget",
    "Change": "Delta",
    "Context": "HttpContext",
    "Cursor": "PageToken",
    "Delivery": "ReplicaApplier",
    "Encoding": "QueryEncoders",
    "Entry": "CacheEntry, VectorRecord",
    "FastEncoder": "StaticEncoder",
    "Flights": "SingleFlight",
    "Generations": "InvalidationCounters",
    "Good": "ValidLine",
    "Line": "KeyRecord",
    "Linked": "LinkedEntities",
    "Need": "Role",
    "NotWhole": "IncompleteRun",
    "Numbers": "InvalidationCounters",
    "OURS": "REFERENCE_RUN",
    "Part": "IndexComponent",
    "Query": "SourceQuery",
    "QueryTable": "StaticQueryEncoder",
    "Recent": "CoalescedTtlValue",
    "Request": "SearchContext",
    "Stamped": "VersionSource",
    "TableFile": "StaticEncoderFile",
    "Times": "CachePolicy",
    "Trust": "GraphTrust",
    "TwoRounds": "SeededStrategy",
    "Versions": "DataVersions",
    "Work": "Workspace",
    "behind": "lag",
    "born": "created_at",
    "bring_up": "catch_up",
    "by_sum": "rank_by_sum",
    "digest": "ranking_hash",
    "fresh_s": "ttl_s",
    "gap": "missed_history",
    "joined": "coalesced",
    "may_leave": "is_visible",
    "merged": "merge_collections",
    "pieces": "fragment_count",
    "sound": "validated",
    "stale_s": "stale_while_revalidate_s",
    "table_is_due": "static_encoder_outdated",
    "total": "sum_contributions",
    "turn": "slot",
}
"""Names of classes and functions."""

ALLOWED = {
    "connection_made": "a method of asyncio's protocols",
    "held_out": "a term of statistics",
    "keep_alive": "a term of HTTP",
    "timeout_keep_alive": "an option of uvicorn",
}
"""Terms that contain a replaced word."""

CONTRACT = {("orchestrator/schema/operations.py", "joined"): "a field of GET /v1/cache"}


def _words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def _bound_names(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Line, name, and whether it is a class or function, of everything that gets a name."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name, True
            case ast.arg():
                yield node.lineno, node.arg, False
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id, False
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr, False
            case _:
                pass


def violations(path: Path) -> list[str]:
    name = str(path.relative_to(ROOT))
    found = [f"{name}: the file's name" for word in _words(path.stem) if word in REPLACED_WORDS]
    is_test = name.startswith("tests/")
    for line, bound, is_definition in _bound_names(ast.parse(path.read_text("utf-8"))):
        if bound in ALLOWED or (name, bound) in CONTRACT or (is_test and bound.startswith("test_")):
            continue
        if words := _words(bound) & REPLACED_WORDS.keys():
            found.append(f"{name}:{line}: {bound}: {', '.join(REPLACED_WORDS[word] for word in sorted(words))}")
        elif is_definition and bound.lstrip("_") in REPLACED_NAMES:
            found.append(f"{name}:{line}: {bound}: {REPLACED_NAMES[bound.lstrip('_')]}")
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_replaced_word_is_a_name(folder: str) -> None:
    assert [found for path in sorted((ROOT / folder).rglob("*.py")) for found in violations(path)] == []


def test_a_replaced_word_is_found(tmp_path: Path) -> None:
    assert _words("asked_sources") & REPLACED_WORDS.keys() == {"asked"}
    assert _words("_toldIt") & REPLACED_WORDS.keys() == {"told"}
    assert [name for _, name, _ in _bound_names(ast.parse("def f(wanted): held = 1; self.kept = 2"))] == [
        "f",
        "wanted",
        "held",
        "kept",
    ]


@pytest.mark.parametrize("folder", ["orchestrator", "adapters", "cache", "fusion", "benchmarks", "docs"])
def test_prose_has_one_named_subject(folder: str) -> None:
    """Each sentence names its subject: the caller, the client, the process, the tenant, the source."""
    pattern = re.compile(r"\b(whoever|nobody|somebody|anybody|everybody)\b", re.IGNORECASE)
    paths = [path for suffix in ("*.py", "*.md", "*.cypher") for path in sorted((ROOT / folder).rglob(suffix))]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]
    assert found == []
