"""Which sources are searched, with which weights, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapters.model.spelling import allowed_names
from adapters.text.quotes import is_quoted
from fusion.source import Source
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.search import AUTO, HYBRID, SearchRequest

IDENTIFIER_FACTOR = 2.0
"""Mode ``auto``: factor on the weight of sources with ``identifier_boost`` if the query contains an identifier."""

_IDENTIFIER = re.compile(r"\w{2,}[._:/\\]\w|\w[._:/\\]\w{2,}|[a-z][A-Z]|[A-Za-z]\w*\d")
"""Matches in a word such as ``os.path``, ``a/bc``, ``getName`` and ``E1234``; not in ``e.g.``."""
_MAX_IDENTIFIER_CHARS = 128
_EVERY = ": every source is searched"


@dataclass(frozen=True, slots=True)
class Routing:
    """The sources to search, the weight of every source, and the reason."""

    sources: tuple[Source, ...]
    weights: Mapping[str, float]
    reason: str


def choose_sources(
    request: SearchRequest,
    sources: Sequence[Source],
    default_weights: Mapping[str, float],
    trust: float,
    has_vector: bool = True,
    identifier_factor: float = IDENTIFIER_FACTOR,
) -> Routing:
    """Choose by mode and query; the weights of the request override the defaults.

    :param has_vector: whether the query has a vector, or can be encoded. If not, mode ``auto`` leaves out the sources
        that compare vectors.
    :param default_weights: from the settings; 1 where they have none.
    :param trust: in [0, 1], factor on the default weight of sources that are scaled by trust.
    :param identifier_factor: that of mode ``auto``; 1: an identifier changes no weight.
    :raises BadRequest: if the mode or a weight names no source, or all weights are 0.
    """
    _check_names(request, sources)
    routed, weights, reason = _by_mode(request, sources, default_weights, trust, identifier_factor)
    if request.mode == AUTO and not has_vector:
        left_out = [source.name for source in routed if compares_vectors(source)]
        routed = [source for source in routed if not compares_vectors(source)] or routed
        if left_out:
            reason = reason.removesuffix(_EVERY)
            reason += f"; {' and '.join(left_out)} is left out: the query has no vector, and nothing encodes it"
    weights |= request.weights
    chosen = tuple(source for source in routed if weights[source.name])
    if not chosen:
        names = ", ".join(source.name for source in routed)
        raise BadRequest(f"weights: all 0 for {names}; at least one must be positive")
    if weightless := [source.name for source in routed if not weights[source.name]]:
        reason += "".join(f"; {name} has weight 0: not searched" for name in weightless)
    return Routing(chosen, weights, reason)


def compares_vectors(source: Source) -> bool:
    """Whether a source needs the vector of a query."""
    return "query_vector" in source.needs


def _check_names(request: SearchRequest, sources: Sequence[Source]) -> None:
    names = [source.name for source in sources]
    if request.mode not in (AUTO, HYBRID, *names):
        raise BadRequest(f"mode: {request.mode[:80]!r}, {allowed_names(request.mode, (AUTO, HYBRID, *names))}")
    for name in request.weights:
        if name not in names:
            raise BadRequest(f"weights: unknown source {name[:80]!r}, {allowed_names(name, names)}")


def _by_mode(
    request: SearchRequest,
    sources: Sequence[Source],
    default_weights: Mapping[str, float],
    trust: float,
    identifier_factor: float,
) -> tuple[Sequence[Source], dict[str, float], str]:
    if request.mode not in (AUTO, HYBRID):
        only = [source for source in sources if source.name == request.mode]
        weights = {source.name: 1.0 for source in sources}
        return only, weights, f"mode {request.mode}: only this source is searched"
    weights = {
        source.name: default_weights.get(source.name, 1.0) * (trust if source.scaled_by_trust else 1.0)
        for source in sources
    }
    if request.mode == HYBRID:
        return sources, weights, "mode hybrid: every source is searched"
    if request.like is not None:
        return sources, weights, f"documents like others{_EVERY}"
    exact = [source for source in sources if source.exact_phrases]
    if exact and is_quoted(request.query):
        names = " and ".join(source.name for source in exact)
        return exact, weights, f"the query is quoted text: only {names} can search for a phrase"
    boosted = [source.name for source in sources if source.identifier_boost]
    if boosted and identifier_factor != 1 and (identifier := find_identifier(request.query)):
        for name in boosted:
            weights[name] *= identifier_factor
        return sources, weights, f"{identifier!r} looks like an identifier: {' and '.join(boosted)} weighs more"
    return sources, weights, f"a question in words{_EVERY}"


def find_identifier(query: str) -> str | None:
    """The first word that looks like an identifier. Each word is checked alone, so the time is linear."""
    words = (word for word in query.split() if len(word) <= _MAX_IDENTIFIER_CHARS)
    return next((word for word in words if _IDENTIFIER.search(word)), None)
