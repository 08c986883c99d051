"""Searches of a graph on a server: the walk of :mod:`fusion.random_walk`, and the names in a query.

The server counts, :mod:`adapters.graph.entity_linking` links the names, and each step of the walk is one statement that
returns the documents that it reaches, its *ring*. The statements are small, because a server plans each of them when it
first runs it. Memgraph has no personalised PageRank with seeds from a query. Mass on edges that lead nowhere is not
returned to the seeds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from adapters.graph.bolt import Bolt, Row
from adapters.graph.cypher import clauses, statement
from adapters.graph.entity_linking import (
    CandidateNames,
    candidate_names,
    fractions_by_rank,
    link_entities,
    names_to_count,
    seed_masses,
)
from adapters.graph.link_types import KNOWN_STRENGTHS, TypeStrengths, full_length
from adapters.graph.memgraph_rows import QueryCounts, WalkedDocument, WalkSeeds, WalkStep, converted
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
from fusion.rank_fields import DocId, DocumentFields

_MIN_RING_SIZE, _MAX_RING_SIZE = 50, 100
"""After each step a walk continues from the documents, or names, with the most mass: as many as it has seeds, within
these bounds. If a filter excludes some of these, the same number that pass it is collected, too."""
_MIN_RINGS = 3
"""Minimum number of steps of a walk."""
_ROUNDING = 1_000_000_000_000
"""Scores are compared in these parts: a server adds in any order, so the last digits are not reproducible."""
_SCORE_DIGITS = 9
"""Significant digits of scores, for the same reason."""
_decode_fields = msgspec.json.Decoder(list[DocumentFields | None]).decode


@dataclass(frozen=True, slots=True)
class _Seeds:
    """Where a walk begins, and what it needs to know of the scope.

    :param names: in the query, each with its mass.
    :param full_length: see :func:`adapters.graph.link_types.full_length`.
    :param strengths: of the types of links, in both directions.
    """

    coverage: float = 0.0
    names: Sequence[tuple[str, float]] = ()
    ring: list[WalkedDocument] = field(default_factory=list)
    full_length: float = 1.0
    strengths: Sequence[tuple[str, tuple[float, float]]] = ()


@dataclass(frozen=True, slots=True)
class _Counts:
    """What linking the names in a query needs to know.

    :param frequency: by word, the number of documents that contain it.
    :param degrees: by possible name, the number of documents that mention it.
    :param documents: number of documents of the scope.
    """

    frequency: Mapping[str, int]
    degrees: Mapping[str, int]
    documents: int
    full_length: float
    strengths: Sequence[tuple[str, tuple[float, float]]]


class GraphSearch:
    """Searches one index on a server.

    :param keys: of its nodes.
    :param chosen: strengths of link types that an operator has set; they override the derived ones.
    """

    def __init__(self, bolt: Bolt, keys: NodeKeys, chosen: TypeStrengths) -> None:
        self._keys = keys
        self._chosen = dict(chosen)
        self._seed_reads, self._step_reads = PlannedReads(bolt), PlannedReads(bolt)

    async def search(self, query: SourceQuery) -> Ranking:
        """Documents that a walk reaches from the names in the query and from its seeds. Ties by id."""
        walk, common = Walk.of_hops(query.hops), self._common(query)
        seeds = await self._seeds(query, query.seed_ids, common)
        steps = [WalkStep(seeds.ring, [])]
        rings = max(_MIN_RINGS, walk.hops)
        while len(steps) <= rings:
            start = _step_request(walk, seeds, steps)
            if not (start["names"] or start["over_links"] or start["over_names"]):
                break
            step = await self._step_reads.read(statement("walk_step"), start, common)
            steps.append(converted(step, WalkStep, "a search"))
        return _ranking(steps, ring_weights(walk, rings), query.depth, seeds.coverage)

    async def mentions_entity(self, query: SourceQuery) -> bool:
        """Whether the query has the name of an entity that a visible document mentions."""
        return bool((await self._seeds(query, (), self._common(query))).names)

    async def _seeds(self, query: SourceQuery, ids: Sequence[DocId], common: Row) -> _Seeds:
        """The names in a query, and the documents to start from."""
        candidates = candidate_names(query.text)
        if not candidates.names and not ids:
            return _Seeds()
        counts = await self._counts(query.scope, candidates)
        key_of_name = self._keys.names(query.scope)
        names = names_to_count(counts.degrees, counts.frequency, counts.documents)
        documents = [self._keys.document((query.scope.tenant, query.scope.environment, id_)) for id_ in ids]
        if not names and not documents:
            return _Seeds()
        name_keys, fractions = list(map(key_of_name, names)), fractions_by_rank(len(documents))
        request = {"names": name_keys, "documents": list(zip(documents, fractions, strict=True))}
        row = await self._seed_reads.read(statement("walk_seeds"), request, common)
        found = converted(row, WalkSeeds, "a search")
        mentions = dict(found.mentions)
        numbers = {name: number for number, name in enumerate(names)}
        entities = link_entities(
            query.text,
            numbers,
            lambda number: mentions.get(name_keys[number], 0),
            counts.frequency,
            counts.documents,
        )
        mass = seed_masses(entities, range(len(names), len(names) + len(documents)))
        mass_of_document = {key: mass[number] for number, key in enumerate(documents, start=len(names))}
        with _readable():
            ring = [msgspec.structs.replace(each, mass=mass_of_document[each.key]) for each in found.ring]
        return _Seeds(
            entities.entity_coverage,
            [(name_keys[number], mass[number]) for number in entities.seeds],
            ring,
            counts.full_length,
            counts.strengths,
        )

    async def _counts(self, scope: Scope, candidates: CandidateNames) -> _Counts:
        """The counts that linking the names in a query needs."""
        key_of_word, key_of_name = self._keys.words(scope), self._keys.names(scope)
        words = {key_of_word(word): word for word in candidates.words}
        names = {key_of_name(name): name for name in candidates.names}
        request = {"words": list(words), "names": list(names)}
        row = await self._seed_reads.read(statement("query_counts"), request, self._counting(scope))
        found = converted(row, QueryCounts, "a search for names")
        with _readable():
            directions = zip(found.link_forward, found.link_backward, strict=True)
            degrees = {names[key]: degree for key, degree in found.degrees}
            return _Counts(
                {words[key]: count for key, count in found.frequencies},
                {name: degrees[name] for name in candidates.names if name in degrees},
                found.documents,
                full_length(found.words, found.documents) if found.documents else 1.0,
                list(zip(found.link_types, directions, strict=True)),
            )

    def start_planning(self) -> None:
        """Have the server plan the statements, those that it has not planned yet."""
        # Of the types of every other query: Neo4j has a plan for each combination of the types of parameters.
        visible = normal(access(Scope(), HIGHEST_CLEARANCE))
        common = self._common(SourceQuery("", 1, Scope(), visible, visible))
        counted: Row = {"words": [], "names": []}
        self._seed_reads.start_planning(statement("query_counts"), counted, self._counting(Scope()))
        self._seed_reads.start_planning(statement("walk_seeds"), {"names": [], "documents": []}, common)
        step = _step_request(Walk(), _Seeds(), [WalkStep([], [])])
        self._step_reads.start_planning(statement("walk_step"), step, common)

    @property
    def is_planning(self) -> bool:
        """Whether the server is planning a statement now."""
        return self._seed_reads.is_planning or self._step_reads.is_planning

    def forget_plans(self) -> None:
        """Take no statement for planned: the server may have been stopped."""
        self._seed_reads.forget()
        self._step_reads.forget()

    async def close(self) -> None:
        """Stop planning."""
        await self._seed_reads.close()
        await self._step_reads.close()

    def _counting(self, scope: Scope) -> Row:
        return {"scope": self._keys.scope(scope), "seed_fanout": Walk().seed_fanout}

    def _common(self, query: SourceQuery) -> Row:
        """The parameters that are the same for all statements of a walk."""
        return {
            "access": clauses(query.access),
            "filter": clauses(query.filter),
            "cap": min(max(len(query.seed_ids), _MIN_RING_SIZE), _MAX_RING_SIZE),
            "fanout": Walk().fanout,
            "seed_fanout": Walk().seed_fanout,
            "chosen": self._chosen,
            "known": KNOWN_STRENGTHS,
        }


def _step_request(walk: Walk, seeds: _Seeds, steps: Sequence[WalkStep]) -> Row:
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
    with _readable():
        stored = _decode_fields(f"[{','.join(fields[id_] for id_ in best)}]")
    rounded = [float(f"{scores[id_]:.{_SCORE_DIGITS}g}") for id_ in best]
    hits = [hit for hit in zip(rounded, best, stored, strict=True) if hit[0] > 0]
    return server_ranking(GRAPH.name, hits, depth, min(coverage, 1.0))


@contextmanager
def _readable() -> Iterator[None]:
    """A context in which a response is read that may not be one.

    :raises BadResponse: for a missing key, or a value that is none.
    """
    try:
        yield
    except (KeyError, ValueError) as error:
        raise unreadable("the graph server's response to a search", error) from error
