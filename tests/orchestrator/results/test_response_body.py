"""The body of a response: the route, the token of the next page, and whether a page continues the first one."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from adapters.model.sources import SOURCES
from adapters.ports import Snapshot
from fusion.columns import Candidates, Ranking
from orchestrator.execution.stage_results import Page, Ranked, Retrieved
from orchestrator.planning.page_token import PageToken
from orchestrator.planning.plan import Plan
from orchestrator.ranking.rank import apply_boosts, apply_collapse, fuse
from orchestrator.results.response_body import execution_hash, page_warning, respond
from orchestrator.schema.search import BoostStrength, Degraded, ResponseBody
from tests.conftest import SCOPE
from tests.orchestrator.services import plan_of

SNAPSHOT = Snapshot(SCOPE, 7, ("v", 7), documents=None)  # type: ignore[arg-type]
IDS = ("a", "b", "c")
RANKINGS = (Ranking.of_ids("vector", IDS, [3.0, 2.0, 1.0]), Ranking.of_ids("keyword", IDS, [9.0, 5.0, 1.0]))
RETRIEVED = Retrieved(RANKINGS, ("vector", "graph", "keyword"), "model", (), ())
PLAN = plan_of("a query", mode="hybrid", limit=2)


def ranked_of(plan: Plan = PLAN, retrieved: Retrieved = RETRIEVED) -> Ranked:
    sources = {source.name: source for source in SOURCES}
    fused = fuse(plan.ranking, Candidates.of(retrieved.rankings), sources)
    factors = {boost.name: None for boost in plan.ranking.boosts}
    return apply_collapse(plan.ranking, fused, apply_boosts(fused, factors, sources), factors)


def page_of(end: int = 2, total: int = 3) -> Page:
    return Page((), (), end, total)


def responded(
    plan: Plan = PLAN, retrieved: Retrieved = RETRIEVED, page: Page | None = None, snapshot: Snapshot = SNAPSHOT
) -> ResponseBody:
    return respond(plan, retrieved, ranked_of(plan, retrieved), page or page_of(), (), snapshot, "build")


def token_of(body: ResponseBody) -> PageToken:
    assert body.next_cursor
    return PageToken.decode(body.next_cursor, PLAN.page.ranking_hash, 300)


def test_the_body_names_the_build_and_the_generation_of_the_snapshot() -> None:
    degraded = (Degraded("graph", "away", 1.0),)
    body = respond(PLAN, RETRIEVED, ranked_of(), page_of(), degraded, SNAPSHOT, "build", warnings=("a",))
    assert (body.index_version, body.generation, body.mode) == ("build", 7, "hybrid")
    assert body.degraded == degraded
    assert body.explain is msgspec.UNSET


def test_the_route_has_the_searched_sources_whether_they_answered_or_not() -> None:
    assert responded().route.sources == ("vector", "graph", "keyword")
    assert responded().route.reason == PLAN.reason


def test_the_route_says_why_a_planned_source_was_not_searched() -> None:
    body = responded(retrieved=replace(RETRIEVED, searched=("vector", "keyword")))
    assert body.route.sources == ("vector", "keyword")
    assert body.route.reason == (f"{PLAN.reason}; graph skipped: no entity in the query, and the other sources agree")


def test_the_token_of_the_next_page_has_everything_that_its_ranking_depends_on() -> None:
    token = token_of(responded())
    assert (token.offset, token.generation, token.depth) == (2, 7, PLAN.ranking.depth)
    assert (token.day, token.encoder) == (PLAN.ranking.day, "model")
    assert token.ranking_hash == PLAN.page.ranking_hash
    assert token.execution_hash == execution_hash(PLAN, RETRIEVED, ranked_of())


@pytest.mark.parametrize(("end", "total"), [(3, 3), (0, 0), (4, 3)])
def test_the_last_page_has_no_next_one(end: int, total: int) -> None:
    assert responded(page=page_of(end, total)).next_cursor is None


def test_the_result_of_a_reranker_has_no_pages() -> None:
    assert responded(plan_of("a query", mode="hybrid", limit=2, rerank=True)).next_cursor is None


def second_page(**token: object) -> Plan:
    first = msgspec.structs.replace(token_of(responded()), **token)
    return plan_of("a query", mode="hybrid", limit=2, cursor=first.encode())


def test_later_tokens_repeat_the_state_of_the_first_page() -> None:
    """So that a change before the second page is reported on the third one, too."""
    plan = second_page(generation=3, execution_hash=b"12345678")
    token = token_of(responded(plan, page=page_of(2, 3)))
    assert (token.generation, token.execution_hash) == (3, b"12345678")


def test_a_page_of_the_same_state_has_no_warning() -> None:
    assert page_warning(second_page(), RETRIEVED, ranked_of(second_page()), 7) == ""
    assert page_warning(PLAN, RETRIEVED, ranked_of(), 99) == ""


def test_a_write_since_the_first_page_is_a_warning() -> None:
    warning = page_warning(second_page(), RETRIEVED, ranked_of(second_page()), 8)
    assert warning == "documents were written since the first page: hits may repeat or be missing"


def test_another_execution_than_that_of_the_first_page_is_a_warning() -> None:
    fewer = replace(RETRIEVED, rankings=RANKINGS[:1])
    warning = page_warning(second_page(), fewer, ranked_of(second_page(), fewer), 7)
    assert warning == "the ranking changed since the first page: hits may repeat or be missing"


def test_the_execution_hash_covers_how_the_ranking_was_computed() -> None:
    def with_ranking(**changed: object) -> Plan:
        return msgspec.structs.replace(PLAN, ranking=msgspec.structs.replace(PLAN.ranking, **changed))

    ranked = ranked_of()
    boosted, older = (
        plan_of("a query", mode="hybrid", boosts={"recency": BoostStrength(1.0, days)}) for days in (30.0, 60.0)
    )
    hashes = [
        execution_hash(PLAN, RETRIEVED, ranked),
        execution_hash(PLAN, replace(RETRIEVED, rankings=RANKINGS[:1]), ranked),
        execution_hash(PLAN, replace(RETRIEVED, expansions=("synonym",)), ranked),
        execution_hash(PLAN, RETRIEVED, replace(ranked, fused=replace(ranked.fused, strategy="concatenate()"))),
        execution_hash(PLAN, RETRIEVED, replace(ranked, factors={"recency": None})),
        execution_hash(with_ranking(weights={**PLAN.ranking.weights, "graph": 0.5}), RETRIEVED, ranked),
        execution_hash(with_ranking(window_radius=9), RETRIEVED, ranked),
        execution_hash(boosted, RETRIEVED, ranked_of(boosted)),
        execution_hash(older, RETRIEVED, ranked_of(older)),
    ]
    assert len(set(hashes)) == len(hashes)
    assert {len(each) for each in hashes} == {8}


def test_the_execution_hash_does_not_depend_on_the_page_or_the_documents() -> None:
    later = plan_of("a query", mode="hybrid", limit=50)
    other = replace(RETRIEVED, rankings=tuple(Ranking.of_ids(r.source, ("z",), [1.0]) for r in RANKINGS))
    assert execution_hash(later, other, ranked_of(later, other)) == execution_hash(PLAN, RETRIEVED, ranked_of())
