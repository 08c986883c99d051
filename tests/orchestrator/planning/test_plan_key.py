"""The cache key differs whenever the response may differ, and is the same otherwise."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adapters import Scope
from adapters.model.filter import And, Eq, In, Not, Range
from adapters.model.sources import SOURCES
from adapters.ports import SortKey
from fusion.confidence import Calibration
from orchestrator.auth.principal import Principal
from orchestrator.planning.likeness import LikePlan
from orchestrator.planning.listing import FacetPlan, ListingPlan
from orchestrator.planning.page_token import PageToken
from orchestrator.planning.plan import BoostPlan, CallPlan, PagePlan, Plan, RankingPlan, RerankPlan
from orchestrator.planning.plan_key import cache_key, plan_hash
from orchestrator.planning.planner import make_plan
from orchestrator.schema.search import BoostStrength, Like, SearchRequest
from orchestrator.settings import Settings

PRINCIPAL = Principal("test", Scope("t", "e"), "normal")
SETTINGS = Settings.of(reranker="chat+http://127.0.0.1/v1", reranker_model="m")
TODAY = 20_000

REQUEST = SearchRequest(
    query="alpha centauri",
    hops=1,
    vector=(3.0, 4.0),
    mode="hybrid",
    limit=7,
    collections=("a", "b"),
    filter=And((Eq("language", "en"), Range("importance", gte=1.0, lt=9.0), Not(In("tags", ("x", "y"))))),
    fusion="rrf(k=10)",
    weights={"graph": 2.0, "vector": 0.5},
    min_score=0.25,
    explain=True,
    collapse="window",
    neighbors=2,
    fields=("title", "snippet"),
    text_chars=80,
    max_tokens=900,
    boosts={"recency": BoostStrength(0.5, 7.0)},
    facets={"topics": 5, "metadata.kind": 7},
)
ALIKE = SearchRequest(query="", like=Like(("a", "b"), "notes", "stars"))
LISTED = SearchRequest(query="", filter=Eq("language", "en"), sort="created_at")


def planned(
    request: SearchRequest = REQUEST,
    principal: Principal = PRINCIPAL,
    settings: Settings = SETTINGS,
    trust: float = 1.0,
) -> Plan:
    return make_plan(request, principal, settings, SOURCES, trust, TODAY, dimension=2)


def complete_plan() -> Plan:
    """A plan in which every optional part has a value. A cursor and a reranker exclude each other in a request."""
    ranking_hash = planned().page.ranking_hash
    token = PageToken.at(20, ranking_hash, b"12345678", 3, 150, TODAY - 1, "model").encode()
    plan = planned(msgspec.structs.replace(REQUEST, cursor=token))
    reranked = planned(msgspec.structs.replace(REQUEST, rerank=True))
    page = msgspec.structs.replace(plan.page, rerank=reranked.page.rerank)
    calibrations = (("keyword+vector", Calibration(0.4, 0.05)), ("vector", Calibration(0.3, 0.05)))
    ranking = msgspec.structs.replace(plan.ranking, calibrations=calibrations, left_out=("memory", "history"))
    ranking = msgspec.structs.replace(ranking, seeds=("a", "b"))
    listing = planned(LISTED).listing
    like, other = planned(ALIKE).like, planned(msgspec.structs.replace(REQUEST, profile="rrf"))
    return msgspec.structs.replace(plan, page=page, ranking=ranking, listing=listing, like=like, other=other)


PLAN = complete_plan()


def key(plan: Plan = PLAN) -> bytes:
    return cache_key(plan_hash(plan), ("place", 3), "build", ("1.0", "schema"))


def changes(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every way to change one thing within a value: the path to it, and the changed value."""
    match value:
        case msgspec.Struct():
            for name in value.__struct_fields__:
                for inner, changed in changes_of_field(value, name, path):
                    yield inner, msgspec.structs.replace(value, **{name: changed})
        case _ if is_dataclass(value):
            for field in fields(value):
                for inner, changed in changes(getattr(value, field.name), f"{path}.{field.name}"):
                    yield inner, replace(value, **{field.name: changed})  # type: ignore[type-var]
        case tuple():
            yield from changes_of_items(value, path)
        case Mapping():
            for name, item in value.items():
                for inner, changed in changes(item, f"{path}[{name}]"):
                    yield inner, {**value, name: changed}
            yield f"{path} with another name", {**value, "another": 1.0}
        case _:
            yield path, changed_scalar(value, path)


def changes_of_items(value: tuple[Any, ...], path: str) -> Iterator[tuple[str, Any]]:
    for index, item in enumerate(value):
        for inner, changed in changes(item, f"{path}[{index}]"):
            yield inner, (*value[:index], changed, *value[index + 1 :])
    yield f"{path} without its last item", value[:-1]
    yield f"{path} with its last item twice", (*value, *value[-1:])
    if len(set(map(repr, value))) > 1:
        yield f"{path} reversed", value[::-1]


def changed_scalar(value: Any, path: str) -> Any:
    """Another value as near as possible."""
    match value:
        case None:
            raise AssertionError(f"{path} is empty here, so that it is not tested: give it a value in complete_plan()")
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return math.nextafter(value, math.inf)
        case str():
            return value + "x"
        case bytes():
            return value[:-1] + bytes([value[-1] ^ 1])
    raise AssertionError(f"{path} has a type that this test does not know: {type(value)}")


UNUSED_BOUNDS = {"gt", "lte"}
"""Unused bounds of the range in the filter, which has two of four."""


def changes_of_field(value: msgspec.Struct, name: str, path: str) -> Iterator[tuple[str, Any]]:
    item = getattr(value, name)
    if isinstance(value, Range) and name in UNUSED_BOUNDS:
        yield f"{path}.{name}", 1.0
        return
    if isinstance(item, Plan):  # of the same parts as the outer one, whose changes are all tried
        ranking = msgspec.structs.replace(item.ranking, depth=item.ranking.depth + 1)
        yield f"{path}.{name}.ranking.depth", msgspec.structs.replace(item, ranking=ranking)
        yield f"{path}.{name} without a value", None
        return
    yield from changes(item, f"{path}.{name}")
    field = next(each for each in msgspec.structs.fields(type(value)) if each.name == name)
    if "None" in str(field.type):
        yield f"{path}.{name} without a value", None


CHANGES = dict(changes(PLAN, "plan"))


@pytest.mark.parametrize("path", CHANGES)
def test_changing_one_field_of_the_plan_changes_the_key(path: str) -> None:
    assert CHANGES[path] != PLAN
    assert key(CHANGES[path]) != key()


def test_no_two_changes_have_the_same_key() -> None:
    assert len({key(plan) for plan in CHANGES.values()} | {key()}) == len(CHANGES) + 1


def test_the_changes_cover_every_field_of_every_part_of_a_plan() -> None:
    prefixes = {
        Plan: "plan.",
        RankingPlan: "plan.ranking.",
        CallPlan: "plan.ranking.calls[0].",
        BoostPlan: "plan.ranking.boosts[0].",
        Scope: "plan.ranking.scope.",
        PagePlan: "plan.page.",
        RerankPlan: "plan.page.rerank.",
        PageToken: "plan.page.token.",
        LikePlan: "plan.like.",
        ListingPlan: "plan.listing.",
        SortKey: "plan.listing.sort.",
        FacetPlan: "plan.facets[0].",
    }
    for type_, prefix in prefixes.items():
        names = [field.name for field in fields(type_)] if is_dataclass(type_) else type_.__struct_fields__
        for name in names:
            assert any(path.startswith(f"{prefix}{name}") for path in CHANGES), f"{prefix}{name}"


def test_everything_besides_the_plan_changes_the_key() -> None:
    encoded = plan_hash(PLAN)
    keys = {
        cache_key(encoded, ("place", 3), "build", ("1.0", "schema")),
        cache_key(encoded, ("other", 3), "build", ("1.0", "schema")),
        cache_key(encoded, ("place", 4), "build", ("1.0", "schema")),
        cache_key(encoded, ("place", "3"), "build", ("1.0", "schema")),
        cache_key(encoded, ("place", 3, 0), "build", ("1.0", "schema")),
        cache_key(encoded, (), "build", ("1.0", "schema")),
        cache_key(encoded, ("place", 3), "other", ("1.0", "schema")),
        cache_key(encoded, ("place", 3), "build", ("1.1", "schema")),
        cache_key(encoded, ("place", 3), "build", ("1.0", "other")),
        cache_key(encoded, ("place", 3), "build", ("schema", "1.0")),
        cache_key(encoded, ("place", 3), "build", ("1.0",)),
        cache_key(encoded, ("place", 3), "build1.0", ("schema",)),
        cache_key(encoded, ("place", 3, "build"), "1.0", ("schema",)),
    }
    assert len(keys) == 13


def test_a_key_has_sixteen_bytes() -> None:
    assert len(key()) == 16


def test_equal_plans_have_equal_keys_and_the_order_of_mappings_does_not_matter() -> None:
    weights = dict(reversed(PLAN.ranking.weights.items()))
    assert list(weights) != list(PLAN.ranking.weights)
    reordered = msgspec.structs.replace(PLAN, ranking=msgspec.structs.replace(PLAN.ranking, weights=weights))
    assert key(complete_plan()) == key(reordered) == key()


EQUIVALENT: dict[str, dict[str, object]] = {
    "the order of weights": {"weights": {"vector": 0.5, "graph": 2.0}},
    "the order of collections": {"collections": ("b", "a")},
    "a collection twice": {"collections": ("a", "b", "a")},
    "another form of the filter": {
        "filter": And(
            (Not(Not(Range("importance", lt=9.0, gte=1.0))), Not(In("tags", ("y", "x"))), Eq("language", "en"))
        )
    },
    "a time limit": {"timeout_ms": 1},
    "a cache mode": {"cache": "bypass"},
}


@pytest.mark.parametrize("name", EQUIVALENT)
def test_what_changes_no_response_does_not_change_the_key(name: str) -> None:
    request = msgspec.structs.replace(REQUEST, **EQUIVALENT[name])
    assert repr(request) != repr(REQUEST)
    assert key(planned(request)) == key(planned())


def test_the_name_and_the_role_of_a_principal_do_not_change_the_key() -> None:
    assert key(planned(principal=replace(PRINCIPAL, name="other", role="admin"))) == key(planned())


CHANGED: dict[str, tuple[object, ...]] = {
    "query": ("alpha  centauri", "Alpha centauri", "alpha"),
    "vector": ((4.0, 3.0), None),
    "mode": ("vector", "auto"),
    "limit": (8,),
    "cursor": (
        PageToken.at(20, planned().page.ranking_hash, b"12345678", 3, 150, TODAY, "model").encode(),
        PageToken.at(21, planned().page.ranking_hash, b"12345678", 3, 150, TODAY, "model").encode(),
    ),
    "collections": (("a",), ("a", "c"), None),
    "include_memory": (True,),
    "hops": (2, 3),
    "filter": (Eq("language", "de"), None),
    "fusion": ("rrf(k=11)", None),
    "profile": ("rrf", "weighted_rrf"),
    "weights": ({"graph": 2.0}, {"graph": 2.0, "vector": 0.25}, {}),
    "min_score": (0.5,),
    "min_confidence": (0.5,),
    "facets": ({"topics": 5}, {"topics": 6, "metadata.kind": 7}, {"tags": 5, "metadata.kind": 7}, {}),
    "explain": (False,),
    "collapse": ("parent", "none", "url"),
    "neighbors": (1, 0),
    "highlight": (False,),
    "fields": (("title",), ("text", "snippet"), None),
    "text_chars": (0, 81, None),
    "format": ("context",),
    "max_tokens": (901, None),
    "rerank": (True,),
    "boosts": (
        {"relationship": True},
        {"recency": BoostStrength(0.5)},
        {"recency": BoostStrength(0.25, 7.0)},
        {},
    ),
}
WITHOUT_EFFECT = {"timeout_ms", "cache", "min_generation"}
LISTING_CHANGED: dict[str, tuple[object, ...]] = {
    "sort": ("-created_at", "importance", None),
    "filter": (Eq("language", "de"),),
    "collections": (("a",),),
    "limit": (8,),
    "facets": ({"tags": 5},),
}


@pytest.mark.parametrize("name", CHANGED)
def test_changing_one_field_of_the_request_changes_the_key(name: str) -> None:
    keys = {key(planned(msgspec.structs.replace(REQUEST, **{name: value}))) for value in CHANGED[name]}
    assert len(keys | {key(planned())}) == len(CHANGED[name]) + 1


def test_changing_what_the_hits_are_like_changes_the_key() -> None:
    likes = [
        ALIKE.like,
        Like(("a", "b"), "notes", "star"),
        Like(("a",), "notes", "stars"),
        Like(("b", "a"), "notes", "stars"),
        Like(("a", "b"), None, "stars"),
        Like(("a", "b"), "notes"),
    ]
    assert len({key(planned(msgspec.structs.replace(ALIKE, like=like))) for like in likes}) == len(likes)


@pytest.mark.parametrize("name", LISTING_CHANGED)
def test_changing_one_field_of_a_request_without_a_query_changes_the_key(name: str) -> None:
    values = LISTING_CHANGED[name]
    keys = {key(planned(msgspec.structs.replace(LISTED, **{name: value}))) for value in values}
    assert len(keys | {key(planned(LISTED))}) == len(values) + 1


def test_every_field_of_a_request_is_tested() -> None:
    assert set(CHANGED) | {"sort", "like"} | WITHOUT_EFFECT == set(SearchRequest.__struct_fields__)


@pytest.mark.parametrize(
    "principal",
    [
        replace(PRINCIPAL, scope=Scope("other", "e")),
        replace(PRINCIPAL, scope=Scope("t", "other")),
        replace(PRINCIPAL, scope=Scope("te", "")),
        replace(PRINCIPAL, clearance="restricted"),
        replace(PRINCIPAL, user="alice"),
        replace(PRINCIPAL, teams=("alice",)),
    ],
)
def test_another_scope_or_viewer_changes_the_key(principal: Principal) -> None:
    assert key(planned(principal=principal)) != key(planned())


def test_two_users_have_two_keys_and_the_same_teams_one() -> None:
    viewers = [("alice", ()), ("bob", ()), ("bob", ("legal",)), ("bob", ("legal", "sales")), (None, ("bob",))]
    principals = [replace(PRINCIPAL, user=user, teams=teams) for user, teams in viewers]
    assert len({key(planned(principal=principal)) for principal in principals}) == len(viewers)
    orders = [("sales", "legal"), ("legal", "sales", "legal")]
    assert len({key(planned(principal=PRINCIPAL.on_behalf_of("bob", teams))) for teams in orders}) == 1


def test_another_trust_or_day_changes_the_key() -> None:
    plain = msgspec.structs.replace(REQUEST, weights={})
    assert key(planned(plain, trust=0.5)) != key(planned(plain))
    tomorrow = make_plan(REQUEST, PRINCIPAL, SETTINGS, SOURCES, 1.0, TODAY + 1, dimension=2)
    assert key(tomorrow) != key(planned())


def test_another_process_has_the_same_keys(python: str) -> None:
    """Whatever the seed of its hashes, by which Python orders sets."""
    code = "from tests.orchestrator.planning import test_plan_key as t; print(t.key().hex(), len(t.CHANGES))"
    outputs = {
        subprocess.run(
            [python, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert outputs == {f"{key().hex()} {len(CHANGES)}"}
