"""From a request to a plan."""

from __future__ import annotations

from time import thread_time
from typing import Any

import numpy as np
import pytest

from adapters import Viewer
from adapters.model.filter import Eq, Filter, In, Not, access, matches
from orchestrator.execution.budget import sources_timeout_s
from orchestrator.planning.defaults import timeout_ms
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.plan import DAY_S
from orchestrator.planning.strategies import parse_strategy
from orchestrator.schema.search import SearchRequest
from orchestrator.settings import Settings
from tests.orchestrator.planning.plans import PRINCIPAL, TODAY, planned, ranking


def passes(condition: Filter, collection: str = "documents", tenant: str = "t", **values: str) -> bool:
    fields = {"tenant": (tenant,), "environment": ("e",), "sensitivity": ("normal",), "collection": (collection,)}
    return matches(condition, fields | {name: (value,) for name, value in values.items()})


@pytest.mark.parametrize("mode", ["vector", "graph", "keyword"])
def test_a_mode_with_the_name_of_a_source_searches_it_alone(mode: str) -> None:
    assert ranking(mode=mode).sources == (mode,)


def test_hybrid_searches_all_sources_with_equal_weights() -> None:
    plan = ranking(mode="hybrid")
    assert plan.sources == ("vector", "graph", "keyword")
    assert plan.weights == {"vector": 1.0, "graph": 1.0, "keyword": 1.0}


@pytest.mark.parametrize("mode", ["vector", "graph", "keyword"])
def test_one_source_alone_has_its_own_order_unless_the_request_changes_it(mode: str) -> None:
    settings = Settings.of(profile="rrf", collapse="window")
    plan = ranking(settings, mode=mode)
    assert (plan.boosts, plan.collapse) == ((), "none")
    changed = ranking(settings, mode=mode, boosts={"recency": True}, collapse="parent")
    assert ([boost.name for boost in changed.boosts], changed.collapse) == (["recency"], "parent")


def test_the_settings_have_the_defaults_of_requests() -> None:
    settings = Settings.of(collapse="window", rerank=True, reranker="rerank+http://127.0.0.1/v1/rerank")
    plan = planned(settings)
    assert plan.ranking.collapse == "window"
    assert plan.page.rerank
    assert planned(settings, rerank=False).page.rerank is None
    assert planned(settings, collapse="none").ranking.collapse == "none"
    assert planned().page.rerank is None


def test_mode_graph_reaches_two_documents_far_unless_the_request_or_the_settings_say_otherwise() -> None:
    assert ranking(mode="graph").hops == 2
    assert ranking(mode="graph", hops=1).hops == 1
    assert ranking(Settings.of(hops=3), mode="graph").hops == 3
    assert ranking(profile="rrf").hops == 2  # it has no seeds either
    assert ranking(mode="hybrid").hops is None
    assert ranking(mode="hybrid", hops=3).hops == 3


def test_the_settings_have_the_largest_limit() -> None:
    with pytest.raises(BadRequest, match=r"^limit: 51, allowed are 1 to 50$"):
        planned(limit=51)
    settings = Settings.of(max_limit=200)
    assert planned(settings, limit=200).page.limit == 200
    with pytest.raises(BadRequest, match=r"^limit: 201, allowed are 1 to 200$"):
        planned(settings, limit=201)


@pytest.mark.parametrize(
    ("fields", "expected_ms"),
    [
        ({}, 300),
        ({"timeout_ms": 20}, 20),
        ({"rerank": True}, 2_300),
        ({"rerank": True, "timeout_ms": 20}, 20),
    ],
)
def test_by_default_the_reranker_has_its_own_time_limit_on_top(fields: dict[str, Any], expected_ms: int) -> None:
    settings = Settings.of(request_timeout_ms=300, rerank_timeout_ms=2_000)
    assert timeout_ms(SearchRequest(query="words", **fields), settings) == expected_ms
    always = Settings.of(request_timeout_ms=300, rerank_timeout_ms=2_000, rerank=True)
    assert timeout_ms(SearchRequest(query="words"), always) == 2_300
    assert timeout_ms(SearchRequest(query="words", rerank=False), always) == 300


@pytest.mark.parametrize("query", ['"exact words"', ' "one"  "two words" '])
def test_auto_searches_the_keyword_source_alone_for_a_query_of_quoted_text(query: str) -> None:
    plan = planned(query=query)
    assert plan.ranking.sources == ("keyword",)
    assert plan.reason == "the query is quoted text: only keyword can search for a phrase"


def test_a_quotation_in_a_sentence_is_a_question_in_words() -> None:
    assert ranking(query='who said "exact words"').sources == ("vector", "graph", "keyword")


@pytest.mark.parametrize("query", ["asyncio.to_thread", "what is getUserName", "error E1234x in log", "ab/c path"])
def test_auto_gives_the_keyword_source_more_weight_for_identifiers(query: str) -> None:
    plan = planned(query=query)
    assert plan.ranking.weights["keyword"] == 2.0
    assert "looks like an identifier" in plan.reason


@pytest.mark.parametrize(
    "query", ["plain words", "What is Python?", "in 2019", "an ISO 8601 date", "don't", "well-known", "e.g. U.S. law"]
)
def test_auto_does_not_take_words_for_identifiers(query: str) -> None:
    assert ranking(query=query).weights["keyword"] == 1.0


def test_the_weights_of_the_request_override_all_others() -> None:
    weights = ranking(query="ab.c", weights={"keyword": 0.5}).weights
    assert weights == {"vector": 1.0, "graph": 1.0, "keyword": 0.5}


def test_the_depth_is_the_same_for_every_limit() -> None:
    assert {ranking(limit=limit).depth for limit in (1, 10, 50)} == {200}


def test_the_shorter_of_two_time_limits_counts() -> None:
    assert sources_timeout_s(40, 120) == 0.8 * 0.04
    assert sources_timeout_s(5_000, 120) == 0.12


def test_memory_and_history_are_searched_only_if_the_request_names_them() -> None:
    condition = ranking().filter
    assert passes(condition)
    assert passes(condition, "anything else")
    assert not passes(condition, "memory")
    assert not passes(condition, "history")
    named = ranking(collections=("memory",)).filter
    assert passes(named, "memory")
    assert not passes(named)


def test_default_collections_are_a_setting() -> None:
    condition = ranking(Settings.of(default_collections="a, b")).filter
    assert [passes(condition, name) for name in ("a", "b", "documents")] == [True, True, False]


def test_a_filter_narrows_and_never_widens() -> None:
    condition = ranking(filter=Not(Eq("language", "de"))).filter
    assert passes(condition, language="en")
    assert not passes(condition, language="de")
    assert not passes(condition, tenant="other")
    assert not passes(condition, "memory")


def test_access_is_the_scope_and_clearance_of_the_principal_alone() -> None:
    assert passes(ranking(collections=("a",)).access, "b")
    assert not passes(ranking().access, tenant="other")
    assert matches(access(PRINCIPAL.scope, Viewer("normal")), {}) is False


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"query": "x" * 4_097}, "query: 4097 characters, allowed are 1 to 4096"),
        ({"query": " \n"}, "query: only white space"),
        ({"fusion": "best"}, "fusion: unknown fusion strategy 'best'"),
        ({"fusion": "rrf(k=0)"}, "fusion: rrf: k is 0"),
        ({"vector": ()}, "vector: 0 numbers, the documents have 2"),
        ({"vector": (1.0, 2.0, 3.0)}, "vector: 3 numbers, the documents have 2"),
        ({"query": "\udcff"}, "query: cannot be encoded as UTF-8, at character 1"),
        ({"weights": {"vector": 0, "graph": 0, "keyword": 0}}, "weights: all 0 for vector, graph, keyword"),
        ({"weights": {"graph": 0}, "mode": "graph"}, "weights: all 0 for graph"),
        ({"vector": (0.0, 0.0)}, "one of them not 0"),
        ({"vector": (float("nan"), 1.0)}, "finite"),
        ({"cursor": "é"}, "cursor: not a cursor of this service"),
        ({"cursor": "x", "rerank": True}, "cursor: a reranker may order the same hits differently"),
        ({"filter": In("tenant", ("other",))}, "unknown field 'tenant'"),
        ({"mode": "best"}, "mode: 'best', allowed are auto, hybrid, vector, graph"),
        ({"weights": {"best": 1}}, "weights: unknown source 'best', allowed are"),
    ],
)
def test_a_value_that_is_not_allowed_is_named(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(BadRequest, match=reason):
        planned(**fields)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_a_vector_is_scaled_to_unit_length(size: float) -> None:
    vector = ranking(vector=(3 * size, 4 * size)).vector
    assert vector is not None
    assert np.frombuffer(vector, "<f4").tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("query", ["a" * 4_096, "a." * 2_048, '"' * 4_096, '" ' * 2_048, " ." * 2_048, "a1" * 2_048])
def test_planning_takes_no_time_for_any_query(query: str) -> None:
    start = thread_time()  # processor time: a loaded machine changes nothing
    planned(query=query)
    assert thread_time() - start < 0.1


@pytest.mark.parametrize("mode", ["auto", "hybrid"])
def test_a_source_with_weight_0_is_not_searched(mode: str) -> None:
    plan = planned(mode=mode, weights={"vector": 0})
    assert plan.ranking.sources == ("graph", "keyword")
    assert plan.reason.endswith("; vector has weight 0: not searched")


@pytest.mark.parametrize("mode", ["auto", "hybrid"])
def test_the_weight_of_the_graph_is_scaled_by_trust_unless_the_request_sets_it(mode: str) -> None:
    assert ranking(mode=mode, trust=0.25).weights == {"vector": 1.0, "graph": 0.25, "keyword": 1.0}
    assert ranking(mode=mode, trust=0.0).sources == ("vector", "keyword")
    assert ranking(mode=mode, trust=0.0, weights={"graph": 2}).weights["graph"] == 2
    assert ranking(mode="graph", trust=0.0).sources == ("graph",)


def stages(**fields: object) -> dict[str, int]:
    return {call.source: call.stage for call in ranking(**fields).calls}  # type: ignore[arg-type]


def test_only_the_joint_walk_has_two_stages_and_only_if_there_is_a_first_one() -> None:
    plan = ranking(mode="hybrid")
    strategy, seeded = parse_strategy(plan.strategy)
    assert seeded is strategy
    assert stages(mode="hybrid") == {"vector": 1, "graph": 2, "keyword": 1}
    assert parse_strategy(ranking(mode="hybrid", fusion="rrf(k=60)").strategy)[1] is None
    assert set(stages(mode="hybrid", fusion="rrf(k=60)").values()) == {1}
    for alone in ("graph", "keyword"):
        assert stages(mode=alone) == {alone: 1}
    assert stages(mode="hybrid", trust=0.0) == {"vector": 1, "keyword": 1}


def test_only_auto_may_skip_a_source_after_the_others_have_answered() -> None:
    assert ranking(mode="auto").may_skip_stage_2
    assert not ranking(mode="hybrid").may_skip_stage_2


def test_the_settings_have_the_weights_and_boosts_that_the_request_does_not_set() -> None:
    settings = Settings.of(weights={"vector": 0.5, "graph": 2}, boosts=("centrality",))
    plan = ranking(settings, trust=0.5, query="os.path", weights={"vector": 1.5})
    # The graph: 2 * 0.5. The keyword source: 1, doubled because the query is an identifier.
    assert plan.weights == {"vector": 1.5, "graph": 1.0, "keyword": 2.0}
    assert [boost.name for boost in plan.boosts] == ["centrality"]
    assert ranking(settings, boosts={"centrality": False}).boosts == ()


def test_ages_are_counted_from_the_day_of_the_request() -> None:
    assert ranking().day == TODAY
    assert DAY_S == 24 * 60 * 60


@pytest.mark.parametrize(
    ("fields", "settings", "left_out"),
    [
        ({}, {}, ("memory", "history")),
        ({"include_memory": True}, {}, ("history",)),
        ({"collections": ("notes",)}, {}, None),
        ({}, {"default_collections": ("notes",)}, None),
    ],
)
def test_which_collections_a_request_leaves_out(
    fields: dict[str, object], settings: dict[str, object], left_out: tuple[str, ...] | None
) -> None:
    """Without names, each of the others is searched by itself; with names, the filters say which."""
    assert ranking(Settings.of(**settings), **fields).left_out == left_out


def test_one_named_collection_is_one_search_with_the_filter_of_the_request() -> None:
    plan = ranking(mode="keyword", collections=("notes", "notes"))
    assert [call.filters for call in plan.calls] == [(plan.filter,)]


def test_a_request_chooses_its_own_minimum_of_confidence() -> None:
    settings = Settings.of(min_confidence=0.4)
    assert ranking(settings).min_confidence == 0.4
    assert ranking(settings, min_confidence=0.2).min_confidence == 0.2
    assert ranking(settings, min_confidence=0.0).min_confidence == 0.0


def test_the_boost_by_relationship_is_a_tenth() -> None:
    assert [(each.name, each.weight) for each in ranking(mode="hybrid", boosts={"relationship": True}).boosts] == [
        ("relationship", 0.1),
    ]
