"""Searches of a graph on a server: the walk of :mod:`fusion.random_walk`, and the names in a query.

One statement links the names in a query, as :mod:`adapters.graph.entity_linking`; one more for each step of the walk
returns the documents that it reaches, its *ring*. The statements are small, because a server plans each of them when it
first runs it. Memgraph has no personalised PageRank with seeds from a query. Mass on edges that lead nowhere is not
returned to the seeds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from adapters.graph.bolt import Bolt, Row
from adapters.graph.cypher import clauses, statement
from adapters.graph.entity_linking import (
    MAX_FREQUENCY_RATIO,
    MIN_COMMON_FREQUENCY,
    MIN_MENTION_RATIO,
    NAMES_MASS_BASE,
    NAMES_MASS_SLOPE,
    candidate_names,
    fractions_by_rank,
)
from adapters.graph.link_types import KNOWN_STRENGTHS, MAX_FULL_LENGTH, TypeStrengths
from adapters.graph.memgraph_rows import MentionsEntity, WalkSeeds, WalkStep, converted
from adapters.graph.node_keys import NodeKeys
from adapters.graph.planned_reads import PlannedReads
from adapters.model.document import HIGHEST_CLEARANCE, Scope
from adapters.model.errors import BadResponse
from adapters.model.filter import access, normal
from adapters.model.sources import GRAPH
from adapters.ports.retriever import SourceQuery
from adapters.servers.server import server_ranking, unreadable
from fusion.columns import Ranking
from fusion.random_walk import Walk
from fusion.rank_fields import DocumentFields

_MIN_RING_SIZE, _MAX_RING_SIZE = 50, 100
"""After each step a walk continues from the documents, or names, with the most mass: as many as it has seeds, within
these bounds. If a filter excludes some of these, the same number that pass it is collected, too."""
_MIN_RINGS = 3
"""Minimum number of steps of a walk."""
_ROUNDING = 1_000_000_000_000
"""Scores are compared in these parts: a server adds in any order, so the last digits are not reproducible."""
_SCORE_DIGITS = 9
"""Significant digits of scores, for the same reason."""
_LINKING = {
    "max_frequency_ratio": MAX_FREQUENCY_RATIO,
    "min_common_frequency": MIN_COMMON_FREQUENCY,
    "min_mention_ratio": MIN_MENTION_RATIO,
    "names_mass_base": NAMES_MASS_BASE,
    "names_mass_slope": NAMES_MASS_SLOPE,
    "max_full_length": MAX_FULL_LENGTH,
}
"""Parameters of the fragment ``linked_names`` that are the same for every query."""
_decode_fields = msgspec.json.Decoder(list[DocumentFields | None]).decode


class GraphSearch:
    """Searches one index on a server.

    :param keys: of its nodes.
    :param chosen: strengths of link types that an operator has set; they override the derived ones.
    """

    def __init__(self, bolt: Bolt, keys: NodeKeys, chosen: TypeStrengths) -> None:
        self._keys = keys
        self._chosen = dict(chosen)
        self._name_reads, self._walk_reads = PlannedReads(bolt), PlannedReads(bolt)

    async def search(self, query: SourceQuery) -> Ranking:
        """Documents that a walk reaches from the names in the query and from its seeds. Ties by id."""
        request = self._request(query)
        if not request["spans"] and not request["documents"]:
            return Ranking.empty(GRAPH.name)
        walk, common = Walk.of_hops(query.hops), self._walking(query, len(request["documents"]))
        row = await self._walk_reads.read(statement("walk_seeds"), request, self._linking(query) | common)
        seeds = converted(row, WalkSeeds, "a search")
        steps = [WalkStep(seeds.ring, [])]
        rings = max(_MIN_RINGS, walk.hops)
        while len(steps) <= rings:
            start = _step_request(walk, seeds, steps)
            if not (start["names"] or start["over_links"] or start["over_names"]):
                break
            step = await self._walk_reads.read(statement("walk_step"), start, common)
            steps.append(converted(step, WalkStep, "a search"))
        return _ranking(steps, ring_weights(walk, rings), query.depth, seeds.coverage)

    async def mentions_entity(self, query: SourceQuery) -> bool:
        """Whether the query has the name of an entity that a visible document mentions."""
        request = self._request(query)
        if not request["spans"]:
            return False
        row = await self._name_reads.read(statement("mentions_entity"), request, self._linking(query))
        return converted(row, MentionsEntity, "a search for names").mentions

    def start_planning(self) -> None:
        """Have the server plan the statements, those that it has not planned yet."""
        # Of the types of every other query: Neo4j has a plan for each combination of the types of parameters.
        visible = normal(access(Scope(), HIGHEST_CLEARANCE))
        query = SourceQuery("", 1, Scope(), visible, visible)
        request, common = self._request(query), self._walking(query, 0)
        self._walk_reads.start_planning(statement("walk_seeds"), request, self._linking(query) | common)
        nothing = WalkSeeds(0.0, [], 1.0, [], [])
        step = _step_request(Walk(), nothing, [WalkStep([], [])])
        self._walk_reads.start_planning(statement("walk_step"), step, common)
        self._name_reads.start_planning(statement("mentions_entity"), request, self._linking(query))

    @property
    def is_planning(self) -> bool:
        """Whether the server is planning a statement now."""
        return self._walk_reads.is_planning or self._name_reads.is_planning

    def forget_plans(self) -> None:
        """Take no statement for planned: the server may have been stopped."""
        self._walk_reads.forget()
        self._name_reads.forget()

    async def close(self) -> None:
        """Stop planning."""
        await self._walk_reads.close()
        await self._name_reads.close()

    def _request(self, query: SourceQuery) -> Row:
        """The words of a query, the possible names in it, and the documents to start from."""
        candidates = candidate_names(query.text)
        key_of_name, key_of_word = self._keys.names(query.scope), self._keys.words(query.scope)
        documents = [self._keys.document((query.scope.tenant, query.scope.environment, id_)) for id_ in query.seed_ids]
        return {
            "words": [key_of_word(word) for word in candidates.words],
            "spans": [[key_of_name(name), name.count(" ") + 1, starts] for name, starts in candidates.names.items()],
            "documents": list(zip(documents, fractions_by_rank(len(documents)), strict=True)),
        }

    def _linking(self, query: SourceQuery) -> Row:
        """The parameters of the fragment ``linked_names``."""
        return {
            "scope": self._keys.scope(query.scope),
            "access": clauses(query.access),
            "seed_fanout": Walk().seed_fanout,
            **_LINKING,
        }

    def _walking(self, query: SourceQuery, seeds: int) -> Row:
        """The parameters of a walk that are the same for all its steps."""
        return {
            "access": clauses(query.access),
            "filter": clauses(query.filter),
            "cap": min(max(seeds, _MIN_RING_SIZE), _MAX_RING_SIZE),
            "fanout": Walk().fanout,
            "seed_fanout": Walk().seed_fanout,
            "chosen": self._chosen,
            "known": KNOWN_STRENGTHS,
        }


def _step_request(walk: Walk, seeds: WalkSeeds, steps: Sequence[WalkStep]) -> Row:
    """What the next step starts from: the ring before over links, the one before that over names."""
    number = len(steps)
    return {
        "names": seeds.names if number == 1 else [],
        "seed_names": [name for name, _ in seeds.names],
        "full_length": seeds.full_length,
        "strengths": seeds.strengths,
        "over_links": [(each.key, each.mass) for each in steps[-1].ring],
        "links_fanout": walk.seed_fanout if number == 1 else walk.fanout,
        "over_names": [(each.key, each.mass) for each in steps[-2].ring] if number > 1 else [],
        "names_fanout": walk.seed_fanout if number == 2 else walk.fanout,
    }


def ring_weights(walk: Walk, rings: int) -> list[float]:
    """The weight of the mass after 0, 1, … ``rings`` steps in the probability of a walk.

    After ``n`` steps a walk with restart has the probability ``sum over k < n of (1 - follow) follow^k T^k s +
    follow^n T^n s``, where ``s`` is the mass of the seeds and ``T`` one step. Mass that goes from documents to names is
    at documents after every second step, so mass after more steps than there are rings is assumed to be distributed
    as two steps before. For two documents that is exact, otherwise an approximation.
    """
    by_step = [(1 - walk.follow) * walk.follow**step for step in range(walk.steps)] + [walk.follow**walk.steps]
    weights = by_step[: rings + 1]
    for step in range(rings + 1, len(by_step)):
        weights[rings - (step - rings) % 2] += by_step[step]
    return weights


def _ranking(steps: Sequence[WalkStep], weights: Sequence[float], depth: int, coverage: float) -> Ranking:
    """The documents that pass the filter by the probability of the walk, which is the weighted sum over its rings."""
    scores: dict[str, float] = defaultdict(float)
    fields: dict[str, str] = {}
    for step, weight in zip(steps, weights, strict=False):  # a walk may end before its last ring
        found = step.passing or step.ring
        if len({each.key for each in found}) < len(found):
            raise BadResponse("the graph server's response to a search has a document twice")
        for each in found:
            if each.id is not None:
                scores[each.id] += each.mass * weight
                fields[each.id] = each.fields or "null"
    best = sorted(scores, key=lambda id_: (-int(scores[id_] * _ROUNDING + 0.5), id_))[:depth]
    try:
        stored = _decode_fields(f"[{','.join(fields[id_] for id_ in best)}]")
    except (TypeError, ValueError) as error:
        raise unreadable("the graph server's response to a search", error) from error
    rounded = [float(f"{scores[id_]:.{_SCORE_DIGITS}g}") for id_ in best]
    hits = [hit for hit in zip(rounded, best, stored, strict=True) if hit[0] > 0]
    return server_ranking(GRAPH.name, hits, depth, min(coverage, 1.0))
