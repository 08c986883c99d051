"""Searches of a graph on a server: the walk of :mod:`fusion.random_walk`, and the names in a query.

One statement counts what linking the names needs (:mod:`adapters.graph.entity_linking`), and each step of the walk is
one that returns the documents that it reaches, its *ring*. The statements are small, because a server plans each of
them when it first runs it. Memgraph has no personalised PageRank with seeds from a query. Mass returns
to the seeds by the own weight of documents; what is on edges that lead nowhere does not.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from adapters.graph.bolt import Bolt, Row
from adapters.graph.cypher import clauses, statement
from adapters.graph.edges import OWN_WEIGHT
from adapters.graph.entity_linking import (
    MAX_FREQUENCY_RATIO,
    MIN_COMMON_FREQUENCY,
    Mentions,
    WordCounts,
    candidate_names,
    fractions_by_rank,
    link_entities,
    seed_masses,
)
from adapters.graph.link_types import KNOWN_STRENGTHS, TypeStrengths, full_length
from adapters.graph.memgraph_rows import Ring, WalkSeeds, WalkStep, converted
from adapters.graph.node_keys import NodeKeys
from adapters.graph.planned_reads import PlannedReads
from adapters.model.document import Scope
from adapters.model.filter import access, normal
from adapters.model.protection import UNRESTRICTED
from adapters.model.sources import GRAPH
from adapters.ports.retriever import SourceQuery
from adapters.servers.server import server_ranking, unreadable
from fusion.columns import Ranking
from fusion.random_walk import Walk
from fusion.values import DocId, DocumentFields

_MIN_RING_SIZE, _MAX_RING_SIZE = 50, 100
"""After each step a walk continues from the documents, or names, with the most mass: as many as it has seeds, within
these bounds. If a filter excludes some of these, the same number that pass it is collected, too."""
_MIN_RINGS = 3
"""Minimum number of steps of a walk."""
_ROUNDING = 1_000_000_000_000
"""Scores are compared in these parts: a server adds in any order, so the last digits are not reproducible."""
_SCORE_DIGITS = 9
"""Significant digits of scores, for the same reason."""
_NONE = Mentions(0)
_NO_COUNTS = WordCounts()
_NO_RING = Ring([], [], [], [])
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
    ring: Ring = _NO_RING
    full_length: float = 1.0
    strengths: Sequence[tuple[str, tuple[float, float]]] = ()


class GraphSearch:
    """Searches one index on a server.

    :param keys: of its nodes.
    :param chosen: strengths of link types that an operator has set; they override the derived ones.
    """

    def __init__(self, bolt: Bolt, keys: NodeKeys, chosen: TypeStrengths) -> None:
        self._keys = keys
        self._chosen = dict(chosen)
        self._reads = PlannedReads(bolt)

    async def search(self, query: SourceQuery) -> Ranking:
        """Documents that a walk reaches from the names in the query and from its seeds. Ties by id."""
        self.start_planning()  # all statements at once: the second one would be planned after the first
        walk, common = Walk.of_hops(query.hops), self._common(query)
        seeds = await self._seeds(query, query.seed_ids, common)
        steps = [WalkStep(seeds.ring, _NO_RING)]
        rings = max(_MIN_RINGS, walk.hops)
        while len(steps) <= rings:
            start = _step_request(walk, seeds, steps)
            if not (start["names"] or start["over_links"] or start["over_names"]):
                break
            step = await self._reads.read(statement("walk_step"), start, common)
            steps.append(converted(step, WalkStep, "a search"))
        return _ranking(steps, _weights(walk, steps, rings), query.depth, seeds.coverage)

    async def mentions_entity(self, query: SourceQuery) -> bool:
        """Whether the query has the name of an entity that a visible document mentions."""
        return bool((await self._seeds(query, (), self._common(query))).names)

    async def _seeds(self, query: SourceQuery, ids: Sequence[DocId], common: Row) -> _Seeds:
        """The names in a query, and the documents to start from."""
        candidates = candidate_names(query.text)
        if not candidates.names and not ids:
            return _Seeds()
        key_of_word, key_of_name = self._keys.words(query.scope), self._keys.names(query.scope)
        words = {key_of_word(word): word for word in candidates.words}
        numbers = {name: number for number, name in enumerate(candidates.names)}
        name_keys = [key_of_name(name) for name in candidates.names]
        documents = [self._keys.document((query.scope.tenant, query.scope.environment, id_)) for id_ in ids]
        request = {
            "words": list(words),
            "names": [
                [key, "" if " " in name else key_of_word(name), min_share]
                for key, (name, min_share) in zip(name_keys, candidates.names.items(), strict=True)
            ],
            "documents": list(zip(documents, fractions_by_rank(len(documents)), strict=True)),
        }
        row = await self._reads.read(statement("walk_seeds"), request, common)
        found = converted(row, WalkSeeds, "a search")
        mentions = {key: Mentions(count, listed > 0) for key, count, listed in found.mentions}
        with _readable():
            counts = {words[key]: WordCounts(*each) for key, *each in found.frequencies}
            directions = zip(found.link_forward, found.link_backward, strict=True)
            strengths = list(zip(found.link_types, directions, strict=True))
        entities = link_entities(
            query.text,
            numbers,
            lambda number: mentions.get(name_keys[number], _NONE),
            lambda word: counts.get(word, _NO_COUNTS),
            found.documents,
        )
        mass = seed_masses(entities, range(len(numbers), len(numbers) + len(documents)))
        mass_of_document = {key: mass[number] for number, key in enumerate(documents, start=len(numbers))}
        with _readable():
            masses = [mass_of_document[key] for key in found.ring.keys]
        return _Seeds(
            entities.entity_coverage,
            [(name_keys[number], mass[number]) for number in entities.seeds],
            msgspec.structs.replace(found.ring, masses=masses),
            full_length(found.words, found.documents) if found.documents else 1.0,
            strengths,
        )

    def start_planning(self) -> None:
        """Have the server plan the statements, those that it has not planned yet."""
        seeds, step = statement("walk_seeds"), statement("walk_step")
        if self._reads.has_planned(seeds) and self._reads.has_planned(step):
            return
        # Of the types of every other query: Neo4j has a plan for each combination of the types of parameters.
        visible = normal(access(Scope(), UNRESTRICTED))
        common = self._common(SourceQuery("", 1, Scope(), visible, visible))
        nothing: Row = {"words": [], "names": [], "documents": []}
        self._reads.start_planning(seeds, nothing, common)
        nowhere = _step_request(Walk(), _Seeds(), [WalkStep(_NO_RING, _NO_RING)])
        self._reads.start_planning(step, nowhere, common)

    @property
    def is_planning(self) -> bool:
        """Whether the server is planning a statement now."""
        return self._reads.is_planning

    def forget_plans(self) -> None:
        """Take no statement for planned: the server may have been stopped."""
        self._reads.forget()

    async def close(self) -> None:
        """Stop planning."""
        await self._reads.close()

    def _common(self, query: SourceQuery) -> Row:
        """The parameters that are the same for all statements of a walk."""
        return {
            "scope": self._keys.scope(query.scope),
            "access": clauses(query.access),
            "filter": clauses(query.filter),
            "cap": min(max(len(query.seed_ids), _MIN_RING_SIZE), _MAX_RING_SIZE),
            "fanout": Walk().fanout,
            "own_weight": OWN_WEIGHT,
            "seed_fanout": Walk().seed_fanout,
            "chosen": self._chosen,
            "known": KNOWN_STRENGTHS,
            "max_frequency_ratio": MAX_FREQUENCY_RATIO,
            "min_common_frequency": MIN_COMMON_FREQUENCY,
        }


def _step_request(walk: Walk, seeds: _Seeds, steps: Sequence[WalkStep]) -> Row:
    """What the next step starts from: the ring before over links, the one before that over names."""
    number = len(steps)
    return {
        "names": seeds.names if number == 1 else [],
        "seed_names": [name for name, _ in seeds.names],
        "full_length": seeds.full_length,
        "strengths": seeds.strengths,
        "over_links": _pairs(steps[-1].ring),
        "links_fanout": walk.seed_fanout if number == 1 else walk.fanout,
        "over_names": _pairs(steps[-2].ring) if number > 1 else [],
        "names_fanout": walk.seed_fanout if number == 2 else walk.fanout,
    }


def _pairs(ring: Ring) -> list[tuple[str, float]]:
    return list(zip(ring.keys, ring.masses, strict=True))


def _weights(walk: Walk, steps: Sequence[WalkStep], rings: int) -> list[float]:
    """The weights of the rings of a walk that may have ended before its last ring."""
    masses = [sum(step.ring.masses) for step in steps] + [0.0] * (rings + 1 - len(steps))
    returned = [step.returned for step in steps[1:]] + [0.0] * (rings + 1 - len(steps))
    return ring_weights(walk, masses, returned)


def ring_weights(walk: Walk, masses: Sequence[float], returned: Sequence[float]) -> list[float]:
    """The weight of the mass after 0, 1, … steps in the probability of a walk.

    Let ``s`` be the seeds and ``T`` one step. A walk with restart is ``p = follow * (T p + r(p) s) + (1 - follow) s``,
    where ``r`` is the part that returns to the seeds, so ``p`` is a sum of ``T^k s``. Mass that goes from documents to
    names is at documents after every second step, so mass after more steps than there are rings is assumed to be
    distributed as two steps before, and to be less by the same factor. For two documents that is exact, otherwise an
    approximation.

    :param masses: of the rings, at least four.
    :param returned: by all rings but the last.
    """
    last = len(masses) - 1
    before = masses[last - 2] + masses[last - 3]
    decay = min((masses[last] + masses[last - 1]) / before, 1.0) if before > 0 else 0.0
    returned = [*returned, returned[last - 2] * decay]
    weights = [1.0] + [0.0] * last
    for _ in range(walk.steps):
        moved = [0.0] * (last + 1)
        moved[0] = 1 - walk.follow + walk.follow * sum(map(operator.mul, weights, returned))
        for ring, weight in enumerate(weights[:last], start=1):
            moved[ring] += walk.follow * weight
        moved[last - 1] += walk.follow * weights[last] * decay
        weights = moved
    return weights


def _ranking(steps: Sequence[WalkStep], weights: Sequence[float], depth: int, coverage: float) -> Ranking:
    """The documents that pass the filter by the probability of the walk, which is the weighted sum over its rings."""
    scores: dict[str, float] = defaultdict(float)
    fields: dict[str, str] = {}
    for step, weight in zip(steps, weights, strict=False):  # a walk may end before its last ring
        found = step.passing if step.passing.keys else step.ring
        for id_, mass, stored in zip(found.ids, found.masses, found.fields, strict=True):
            if id_:
                scores[id_] += mass * weight
                fields[id_] = stored
    best = sorted(scores, key=lambda id_: (-int(scores[id_] * _ROUNDING + 0.5), id_))[:depth]
    with _readable():
        decoded = _decode_fields(f"[{','.join(fields[id_] for id_ in best)}]")
    rounded = [float(f"{scores[id_]:.{_SCORE_DIGITS}g}") for id_ in best]
    hits = [hit for hit in zip(rounded, best, decoded, strict=True) if hit[0] > 0]
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
