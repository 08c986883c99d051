"""From a request to what will be done, and why: pure, so that every decision can be shown and tested."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from adapters import Query
from adapters.filter import And, Filter, In, Not, access, check, conjunction, normal
from fusion import Collapse, Strategy, TwoRounds, parse
from orchestrator.caller import Caller
from orchestrator.contract import SOURCES, Boost, SearchRequest, Source
from orchestrator.cursor import Cursor, digest
from orchestrator.settings import Settings
from orchestrator.timing import day

ASKED_FOR_BY_NAME = ("memory", "history")
"""Collections that a search leaves out unless it names them."""

_QUOTED = re.compile(r'(?:\s*"[^"]+")+\s*')
_IDENTIFIER = re.compile(r"\w{2,}[._:/\\]\w|\w[._:/\\]\w{2,}|[a-z][A-Z]|[A-Za-z]\w*\d")
"""Of one word: ``os.path``, ``a/bc``, ``getName``, ``E1234``; not ``e.g.``."""
_LONGEST_IDENTIFIER = 128
_MOST_HITS = 50
"""What ``limit`` can be."""
_SOURCES_SHARE = 0.8
"""Of a request's time, what its sources have at most: what they found is still to be read."""


class BadRequest(ValueError):
    """The request cannot be planned: the message names the field, its value and what is allowed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is decided before anything is done.

    ``rounds`` names the source that is asked after the others, and what it starts from; ``None`` asks all at once.
    ``may_stop`` says that this source need not be asked where the others agree on the first document, and the query
    names nothing.
    ``parts`` are filters that together say what ``query.filter`` says: one for each collection, if several are named.
    ``timeout_s`` is for the sources, in seconds; ``day`` is the one that ages are counted from, since the epoch.
    ``request`` and ``cursor`` tell the pages of one ranking.
    """

    query: Query
    parts: tuple[Filter, ...]
    sources: tuple[Source, ...]
    rounds: TwoRounds | None
    may_stop: bool
    reason: str
    strategy: Strategy
    weights: Mapping[str, float]
    limit: int
    boosts: tuple[Boost, ...]
    collapse: Collapse
    radius: int
    neighbors: int
    rerank: bool
    min_score: float
    timeout_s: float
    day: int
    request: bytes
    cursor: Cursor | None


def plan(
    request: SearchRequest, caller: Caller, settings: Settings, dimension: int, now: float, guard: float = 1.0
) -> Plan:
    """Decide.

    :param dimension: how long the documents' vectors are.
    :param now: seconds since the epoch.
    :param guard: in [0, 1], how far the graph can be trusted: its weight where the request gives none.
    :raises BadRequest: if a field's value is not allowed.
    """
    if len(request.query) > settings.max_query_chars:
        raise BadRequest(f"query: {len(request.query)} characters, allowed are 1 to {settings.max_query_chars}")
    if not request.query.strip():
        raise BadRequest("query: nothing but white space, allowed is text of 1 character and more")
    try:
        request.query.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(f"query: not text that UTF-8 can hold, at character {error.start + 1}") from error
    routed, weights, reason = _route(request, settings, guard)
    weights.update(request.weights.items())
    if not (sources := tuple(source for source in routed if weights[source])):
        raise BadRequest(f"weights: all 0 for {', '.join(routed)}; one of them must count")
    if weightless := [source for source in routed if not weights[source]]:
        reason += f"; {' and '.join(weightless)} would weigh nothing"
    try:
        strategy, rounds = _strategy(settings.fusion if request.fusion is None else request.fusion)
    except ValueError as error:
        raise BadRequest(f"fusion: {error}") from error
    switched: dict[Boost, bool] = dict.fromkeys(settings.boosts, True) | request.boosts
    boosts = tuple(sorted(name for name, on in switched.items() if on))
    allowed, wanted, parts = filters(request, caller, settings)
    of = digest(request, wanted, caller)
    cursor = _cursor(request, of, max(_MOST_HITS * settings.overfetch, settings.depth))
    return Plan(
        query=Query(
            remembered=request.cache,
            text=request.query,
            depth=cursor.depth if cursor else max(request.limit * settings.overfetch, settings.depth),
            scope=caller.scope,
            access=allowed,
            filter=wanted,
            vector=_vector(request, dimension),
        ),
        parts=parts,
        sources=sources,
        rounds=_rounds(rounds, sources),
        may_stop=request.mode == "auto",
        reason=reason,
        strategy=strategy,
        weights=weights,
        limit=request.limit,
        boosts=boosts,
        collapse=request.collapse,
        radius=request.neighbors or settings.window_radius,
        neighbors=request.neighbors,
        rerank=request.rerank,
        min_score=request.min_score,
        timeout_s=min(request.timeout_ms * _SOURCES_SHARE, settings.source_timeout_ms) / 1_000,
        day=cursor.day if cursor else day(now),
        request=of,
        cursor=cursor,
    )


def _cursor(request: SearchRequest, of: bytes, deepest: int) -> Cursor | None:
    if request.cursor is None:
        return None
    if request.rerank:
        raise BadRequest("cursor: a reranker may order the same hits otherwise each time, so there are no pages of it")
    try:
        return Cursor.read(request.cursor, of, deepest)
    except ValueError as error:
        raise BadRequest(f"cursor: {error}") from error


def _rounds(rounds: TwoRounds | None, sources: Sequence[Source]) -> TwoRounds | None:
    """The strategy, if it has a source wait for the others, and both that source and others are asked."""
    return rounds if rounds and rounds.follows in sources and len(sources) > 1 else None


def _route(
    request: SearchRequest, settings: Settings, guard: float
) -> tuple[tuple[Source, ...], dict[str, float], str]:
    """Which sources, with what weight, and the reason in words."""
    weights: dict[str, float] = {
        "vector": settings.weight_vector,
        "graph": settings.weight_graph * guard,
        "keyword": settings.weight_keyword,
    }
    match request.mode:
        case "vector" | "graph" | "keyword" as only:
            return (only,), dict.fromkeys(SOURCES, 1.0), f"mode {only} asks that source alone"
        case "hybrid":
            return SOURCES, weights, "mode hybrid asks every source"
        case "auto":
            if _QUOTED.fullmatch(request.query):
                reason = "nothing but quoted text: it is demanded, and only keyword can promise that"
                return ("keyword",), weights, reason
            if identifier := _identifier(request.query):
                weights["keyword"] *= settings.identifier_weight
                return SOURCES, weights, f"{identifier!r} looks like an identifier: keyword weighs more"
            return SOURCES, weights, "a question in words: every source"


def _identifier(query: str) -> str | None:
    """The first word that looks like one. Word by word, so that the time is linear in the query's length."""
    words = (word for word in query.split() if len(word) <= _LONGEST_IDENTIFIER)
    return next((word for word in words if _IDENTIFIER.search(word)), None)


def filters(request: SearchRequest, caller: Caller, settings: Settings) -> tuple[Filter, Filter, tuple[Filter, ...]]:
    """What the caller may see, what this request may return, and that by collection; all in normal form.

    :raises BadRequest: if the request's own filter is not allowed.
    """
    if request.filter is not None:
        try:
            check(request.filter)
        except ValueError as error:
            raise BadRequest(str(error)) from error
    collections = request.collections or settings.default_collections
    own = None if request.filter is None else normal(request.filter)

    def narrowed(within: Filter) -> Filter:
        return within if own is None else conjunction(within, own)

    wanted = narrowed(_within(caller, collections))
    if len(set(collections)) < 2:
        return _access(caller), wanted, (wanted,)
    parts = tuple(narrowed(_within(caller, (name,))) for name in sorted(set(collections)))
    return _access(caller), wanted, parts


@lru_cache(maxsize=1_024)
def _access(caller: Caller) -> Filter:
    return normal(access(caller.scope, caller.clearance))


@lru_cache(maxsize=4_096)
def _within(caller: Caller, collections: tuple[str, ...]) -> Filter:
    """What a request without a filter of its own may return."""
    searched = In("collection", collections) if collections else Not(In("collection", ASKED_FOR_BY_NAME))
    return normal(And((_access(caller), searched)))


@lru_cache(maxsize=256)
def _strategy(written: str) -> tuple[Strategy, TwoRounds | None]:
    """The strategy, and again if it goes in two rounds: to ask a protocol for that costs more than planning does."""
    strategy = parse(written)
    return strategy, strategy if isinstance(strategy, TwoRounds) else None


def _vector(request: SearchRequest, dimension: int) -> np.ndarray[tuple[int], np.dtype[np.float32]] | None:
    """The request's own vector, scaled to unit length."""
    if request.vector is None:
        return None
    if len(request.vector) != dimension:
        raise BadRequest(f"vector: {len(request.vector)} numbers, the documents have {dimension}")
    vector = np.asarray(request.vector, np.float64)
    largest = float(np.abs(vector).max(initial=0.0))
    if not np.isfinite(largest) or largest == 0.0:
        raise BadRequest("vector: must hold finite numbers, one of them not 0")
    vector /= largest  # so that no square overflows
    return (vector / np.linalg.norm(vector)).astype(np.float32)
