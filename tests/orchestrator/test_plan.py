from __future__ import annotations

from time import perf_counter

import pytest

from adapters import Scope
from adapters.filter import Eq, Filter, In, Not, access, matches
from orchestrator.caller import Caller
from orchestrator.contract import SearchRequest
from orchestrator.plan import BadRequest, Plan, plan
from orchestrator.settings import Settings

NOW = 86_400.0 * 20_000 + 5
CALLER = Caller(Scope("t", "e"), "normal")


def planned(settings: Settings | None = None, guard: float = 1.0, **asked: object) -> Plan:
    return plan(
        SearchRequest(**{"query": "words", **asked}), CALLER, settings or Settings(), dimension=2, now=NOW, guard=guard
    )


def passes(wanted: Filter, collection: str = "documents", tenant: str = "t", **values: str) -> bool:
    held = {"tenant": (tenant,), "environment": ("e",), "sensitivity": ("normal",), "collection": (collection,)}
    return matches(wanted, held | {name: (value,) for name, value in values.items()})


@pytest.mark.parametrize("mode", ["vector", "graph", "keyword"])
def test_a_source_by_name_is_asked_alone(mode: str) -> None:
    assert planned(mode=mode).sources == (mode,)


def test_hybrid_asks_all_alike() -> None:
    made = planned(mode="hybrid")
    assert made.sources == ("vector", "graph", "keyword")
    assert made.weights == {"vector": 1.0, "graph": 1.0, "keyword": 1.0}


@pytest.mark.parametrize("query", ['"exact words"', ' "one"  "two words" '])
def test_auto_asks_keyword_alone_for_nothing_but_quoted_text(query: str) -> None:
    made = planned(query=query)
    assert made.sources == ("keyword",)
    assert "demanded" in made.reason


def test_a_quotation_in_a_sentence_is_a_question_in_words() -> None:
    assert planned(query='who said "exact words"').sources == ("vector", "graph", "keyword")


@pytest.mark.parametrize("query", ["asyncio.to_thread", "what is getUserName", "error E1234x in log", "ab/c path"])
def test_auto_lets_keyword_weigh_more_for_identifiers(query: str) -> None:
    made = planned(query=query)
    assert made.weights["keyword"] == 2.0
    assert "looks like an identifier" in made.reason


@pytest.mark.parametrize(
    "query", ["plain words", "What is Python?", "in 2019", "an ISO 8601 date", "don't", "well-known", "e.g. U.S. law"]
)
def test_auto_treats_words_as_words(query: str) -> None:
    assert planned(query=query).weights["keyword"] == 1.0


def test_the_request_s_own_weights_win() -> None:
    assert planned(query="ab.c", weights={"keyword": 0.5}).weights == {"vector": 1.0, "graph": 1.0, "keyword": 0.5}


def test_depth_grows_with_the_limit_and_never_falls_below_the_setting() -> None:
    assert planned(limit=1).query.depth == 100
    assert planned(limit=50).query.depth == 150


def test_the_shorter_of_two_deadlines_counts() -> None:
    assert planned(timeout_ms=40).timeout_s == 0.8 * 0.04
    assert planned(timeout_ms=5_000).timeout_s == 0.12


def test_memory_and_history_are_asked_for_by_name() -> None:
    wanted = planned().query.filter
    assert passes(wanted)
    assert passes(wanted, "anything else")
    assert not passes(wanted, "memory")
    assert not passes(wanted, "history")
    named = planned(collections=("memory",)).query.filter
    assert passes(named, "memory")
    assert not passes(named)


def test_default_collections_are_a_setting() -> None:
    wanted = planned(Settings(default_collections="a, b")).query.filter
    assert [passes(wanted, name) for name in ("a", "b", "documents")] == [True, True, False]


def test_a_filter_narrows_and_never_widens() -> None:
    wanted = planned(filter=Not(Eq("language", "de"))).query.filter
    assert passes(wanted, language="en")
    assert not passes(wanted, language="de")
    assert not passes(wanted, tenant="other")
    assert not passes(wanted, "memory")


def test_access_is_the_caller_s_scope_and_clearance_alone() -> None:
    assert passes(planned(collections=("a",)).query.access, "b")
    assert not passes(planned().query.access, tenant="other")
    assert matches(access(CALLER.scope, "normal"), {}) is False


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"query": "x" * 4_097}, "query: 4097 characters, allowed are 1 to 4096"),
        ({"query": " \n"}, "query: nothing but white space"),
        ({"fusion": "best"}, "fusion: unknown fusion strategy 'best'"),
        ({"fusion": "rrf(k=0)"}, "fusion: rrf: k is 0"),
        ({"vector": ()}, "vector: 0 numbers, the documents have 2"),
        ({"vector": (1.0, 2.0, 3.0)}, "vector: 3 numbers, the documents have 2"),
        ({"query": "\udcff"}, "query: not text that UTF-8 can hold, at character 1"),
        ({"weights": {"vector": 0, "graph": 0, "keyword": 0}}, "weights: all 0 for vector, graph, keyword"),
        ({"weights": {"graph": 0}, "mode": "graph"}, "weights: all 0 for graph"),
        ({"vector": (0.0, 0.0)}, "one of them not 0"),
        ({"vector": (float("nan"), 1.0)}, "finite"),
        ({"cursor": "é"}, "cursor: no cursor of ours"),
        ({"cursor": "x", "rerank": True}, "cursor: a reranker may order the same hits otherwise"),
        ({"filter": In("tenant", ("other",))}, "unknown field 'tenant'"),
    ],
)
def test_what_cannot_be_planned_is_told(asked: dict[str, object], complaint: str) -> None:
    with pytest.raises(BadRequest, match=complaint):
        planned(**asked)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_a_vector_is_brought_to_unit_length(size: float) -> None:
    vector = planned(vector=(3 * size, 4 * size)).query.vector
    assert vector is not None
    assert vector.tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("query", ["a" * 4_096, "a." * 2_048, '"' * 4_096, '" ' * 2_048, " ." * 2_048, "a1" * 2_048])
def test_planning_takes_no_time_whatever_is_asked(query: str) -> None:
    began = perf_counter()
    planned(query=query)
    assert perf_counter() - began < 0.1


@pytest.mark.parametrize("mode", ["auto", "hybrid"])
def test_a_source_that_would_weigh_nothing_is_not_asked(mode: str) -> None:
    made = planned(mode=mode, weights={"vector": 0})
    assert made.sources == ("graph", "keyword")
    assert made.reason.endswith("; vector would weigh nothing")


@pytest.mark.parametrize("mode", ["auto", "hybrid"])
def test_the_graph_weighs_what_the_guard_says_unless_the_request_does(mode: str) -> None:
    assert planned(mode=mode, guard=0.25).weights == {"vector": 1.0, "graph": 0.25, "keyword": 1.0}
    assert planned(mode=mode, guard=0.0).sources == ("vector", "keyword")
    assert planned(mode=mode, guard=0.0, weights={"graph": 2}).weights["graph"] == 2
    assert planned(mode="graph", guard=0.0).sources == ("graph",)


def test_only_the_joint_walk_asks_in_two_rounds_and_only_where_there_is_a_first() -> None:
    made = planned(mode="hybrid")
    assert made.rounds is made.strategy
    assert planned(mode="hybrid", fusion="rrf(k=60)").rounds is None
    for alone in ("graph", "keyword"):
        assert planned(mode=alone).rounds is None
    assert planned(mode="hybrid", guard=0.0).rounds is None


def test_only_auto_may_leave_a_source_out_once_the_others_have_answered() -> None:
    assert planned(mode="auto").may_stop
    assert not planned(mode="hybrid").may_stop


def test_settings_weigh_where_the_request_does_not() -> None:
    chosen = Settings(weight_vector=0.5, weight_graph=2, identifier_weight=3, boosts=("centrality",))
    made = planned(chosen, guard=0.5, query="os.path", weights={"vector": 1.5})
    assert made.weights == {"vector": 1.5, "graph": 1.0, "keyword": 3.0}
    assert made.boosts == ("centrality",)
    assert planned(chosen, boosts={"centrality": False}).boosts == ()
