"""Which sources are searched, with which weights, for any set of sources."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion.source import Source
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.routing import IDENTIFIER_FACTOR, Routing, choose_sources, find_identifier
from orchestrator.schema.search import SearchRequest

PLAIN = Source("plain")
EXACT = Source("exact", exact_phrases=True)
CODE = Source("code", identifier_boost=True)
CODE_TOO = Source("code_too", identifier_boost=True)
LINKS = Source("links", role="graph", stage=2, scaled_by_trust=True)


def routed(*sources: Source, trust: float = 1.0, defaults: dict[str, float] | None = None, **fields: object) -> Routing:
    request = SearchRequest(**{"query": "words", **fields})  # type: ignore[arg-type]
    return choose_sources(request, sources, defaults or {}, trust)


def names(routing: Routing) -> list[str]:
    return [source.name for source in routing.sources]


def test_quoted_text_is_searched_by_every_source_that_can_require_a_phrase() -> None:
    other = Source("other", exact_phrases=True)
    routing = routed(PLAIN, EXACT, other, query='"exact words"')
    assert names(routing) == ["exact", "other"]
    assert "only exact and other can search for a phrase" in routing.reason


def test_without_a_source_that_can_require_a_phrase_quoted_text_is_searched_by_all() -> None:
    routing = routed(PLAIN, LINKS, query='"exact words"')
    assert names(routing) == ["plain", "links"]
    assert routing.reason == "a question in words: every source is searched"


@pytest.mark.parametrize("mode", ["hybrid", "plain"])
def test_only_auto_looks_at_the_query(mode: str) -> None:
    for query in ('"exact words"', "os.path"):
        routing = routed(PLAIN, EXACT, CODE, query=query, mode=mode)
        assert names(routing) == (["plain"] if mode == "plain" else ["plain", "exact", "code"])
        assert routing.weights == {"plain": 1.0, "exact": 1.0, "code": 1.0}


def test_an_identifier_raises_the_weight_of_every_source_that_is_good_at_them() -> None:
    routing = routed(PLAIN, CODE, CODE_TOO, query="where is os.path", defaults={"code": 0.5})
    assert routing.weights == {"plain": 1.0, "code": 0.5 * IDENTIFIER_FACTOR, "code_too": IDENTIFIER_FACTOR}
    assert routing.reason == "'os.path' looks like an identifier: code and code_too weighs more"
    assert routed(PLAIN, query="os.path").reason == "a question in words: every source is searched"


@given(st.floats(0, 1), st.floats(0, 1_000), st.floats(0.001, 1_000))
def test_trust_scales_the_default_weight_of_sources_that_say_so(trust: float, links: float, plain: float) -> None:
    routing = routed(PLAIN, LINKS, trust=trust, defaults={"links": links, "plain": plain}, mode="hybrid")
    assert routing.weights == {"plain": plain, "links": links * trust}
    assert ("links" in names(routing)) == (links * trust > 0)


def test_a_source_that_is_searched_alone_has_weight_1_whatever_the_settings_and_the_trust() -> None:
    routing = routed(PLAIN, LINKS, trust=0.0, defaults={"links": 0.0}, mode="links")
    assert names(routing) == ["links"]
    assert routing.weights["links"] == 1.0
    assert routed(PLAIN, LINKS, mode="links", weights={"links": 3.0}).weights["links"] == 3.0


def test_sources_with_weight_0_are_left_out_and_named() -> None:
    routing = routed(PLAIN, EXACT, CODE, mode="hybrid", weights={"plain": 0.0, "code": 0.0})
    assert names(routing) == ["exact"]
    assert routing.reason == (
        "mode hybrid: every source is searched; plain has weight 0: not searched; code has weight 0: not searched"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mode": "other"}, "mode: 'other', allowed are auto, hybrid, plain, links"),
        ({"weights": {"other": 1.0}}, "weights: unknown source 'other', allowed are plain, links"),
        ({"weights": {"plain": 0.0, "links": 0.0}}, "weights: all 0 for plain, links; at least one must be positive"),
        ({"weights": {"plain": 0.0}, "mode": "plain"}, "weights: all 0 for plain; at least one must be positive"),
    ],
)
def test_names_and_weights_that_are_not_allowed(fields: dict[str, object], message: str) -> None:
    with pytest.raises(BadRequest, match=f"^{re.escape(message)}$"):
        routed(PLAIN, LINKS, **fields)


@given(st.text(max_size=200))
def test_an_identifier_is_a_word_of_the_query(query: str) -> None:
    found = find_identifier(query)
    assert found is None or found in query.split()


@given(st.text("ab1._-A ", max_size=40))
def test_words_around_an_identifier_do_not_hide_it(words: str) -> None:
    assert find_identifier(f"{words} ") is not None or find_identifier(f"{words} os.path {words}") == "os.path"


@pytest.mark.parametrize(
    ("word", "is_identifier"),
    [
        ("os.path", True), ("a/bc", True), ("getName", True), ("E1234", True), ("x2", True),
        ("a" * 127 + "1", True), ("a" * 128 + "1", False), ("2019", False), ("e.g.", False),
        ("U.S.", False), ("USA", False), ("well-known", False), ("don't", False), ("a.b", False),
    ],
)  # fmt: skip
def test_what_looks_like_an_identifier(word: str, is_identifier: bool) -> None:
    assert find_identifier(f"what is {word} for") == (word if is_identifier else None)
