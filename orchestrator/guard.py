"""How far the graph can be trusted: whether what it holds together is what the vectors hold together, too.

Asked once after bulk writes, without anybody's judgment: passages stand in for queries, the nearest of each by vector
are where the walk starts, and what counts is how much of what it finds besides lies among the next nearest. A graph of
real relationships finds them several times as often as chance would; one whose documents were shuffled, less often.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec

from adapters import DocumentReader, QueryEncoder, Record, Retriever, Scope, files
from adapters.document import SENSITIVITIES, passage
from adapters.errors import Unavailable
from adapters.filter import Filter, access, normal
from adapters.port import Query

TRUST = "graph-trust.json"
"""Its file in the data folder."""

_SAMPLED = 1_000
_PASSAGES = 200
"""Documents drawn from all scopes together, and of those taken for one scope."""
_NEAR = 100
"""Nearest documents by vector that count as found, at most: fewer where there are few documents."""
_SEEDS_SHARE = 10
"""Of those, one in so many is where the walk starts."""
_WALKED = 1_000
_CHARACTERS = 400
"""Of a passage, as a query: some windows of the model's time are saved, and queries are short."""
_LEAST = 50
"""Documents of a scope: with fewer, near and far cannot be told apart."""
_LEAST_WALKS = 20
"""Walks that found anything: with fewer, nothing is known of the graph, and nothing held against it."""


class Trust(msgspec.Struct, frozen=True):
    """What was measured in one scope: ``lift`` is how many times more often than chance, the median of ``walks``."""

    tenant: str
    environment: str
    lift: float
    walks: int

    @property
    def guard(self) -> float:
        """What the graph's part of a score is multiplied with: 0 up to twice chance, 1 from three times on."""
        return min(max(self.lift - 2.0, 0.0), 1.0)


class _Measured(msgspec.Struct, frozen=True):
    generation: int
    scopes: list[Trust]


class Guard:
    """The trust at ``path``, where it was measured, followed as it is measured again.

    By scope: what one tenant writes must not move another's answers.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._trust: dict[Scope, Trust] = {}
        self.generation = -1
        """Of the index, when it was measured; -1 if it never was."""
        self.refresh()

    def trust(self, scope: Scope) -> Trust | None:
        """What is known of a scope."""
        return self._trust.get(scope)

    def value(self, scope: Scope) -> float:
        """The weight of the graph where a request names none; 1 where nothing is known."""
        known = self.trust(scope)
        return 1.0 if known is None else known.guard

    def refresh(self) -> None:
        """Read the file if it is another one than the last time; one of another build counts as none.

        :raises Unavailable: if it is damaged.
        """
        stamp = files.stamp(self._path)
        if stamp is None or stamp == self._stamp:
            return
        try:
            measured = msgspec.json.decode(self._path.read_bytes(), type=_Measured)
        except msgspec.ValidationError:
            measured = _Measured(-1, [])
        except msgspec.DecodeError as error:
            raise Unavailable(f"{self._path} is damaged, remove it: {error}") from error
        self._trust = {Scope(each.tenant, each.environment): each for each in measured.scopes}
        self.generation, self._stamp = measured.generation, stamp

    async def measure(
        self,
        documents: DocumentReader,
        encoder: QueryEncoder,
        vectors: Retriever,
        graph: Retriever,
        generation: int,
    ) -> None:
        """Measure every scope that has enough documents among a sample, and keep it.

        :raises AdapterError: if a source does not answer.
        """
        by_scope: dict[Scope, list[Record]] = defaultdict(list)
        for record in await documents.sample(_SAMPLED):
            by_scope[Scope(record.tenant, record.environment)].append(record)
        found = []
        for scope, records in by_scope.items():
            count = sum((await documents.counts("collection", _everything(scope))).values())
            if count < _LEAST:
                continue
            lifts = [await _lift(record, count, encoder, vectors, graph) for record in _spread(records)]
            walked = [lift for lift in lifts if lift is not None]
            if len(walked) >= _LEAST_WALKS:
                found.append(Trust(scope.tenant, scope.environment, round(median(walked), 6), len(walked)))
        files.replace(self._path, msgspec.json.encode(_Measured(generation, found)))
        self.refresh()


def _spread(records: Sequence[Record]) -> Sequence[Record]:
    """Some of them, from all over."""
    return records[:: max(len(records) // _PASSAGES, 1)][:_PASSAGES]


async def _lift(
    record: Record, count: int, encoder: QueryEncoder, vectors: Retriever, graph: Retriever
) -> float | None:
    """How many times more often than chance the walk from a passage's nearest finds its next nearest.

    ``None`` where it finds nothing else: then the graph says nothing of the passage, neither good nor bad.
    """
    scope, itself = Scope(record.tenant, record.environment), record.document.id
    near = min(_NEAR, count // _SEEDS_SHARE)
    everything = _everything(scope)
    vector = await encoder.encode(passage(record.document)[:_CHARACTERS])
    found = await vectors.search(Query("", near + 1, scope, everything, everything, vector))
    nearest = [id_ for id_ in found.ids if id_ != itself][:near]
    seeds = nearest[: max(near // _SEEDS_SHARE, 1)]
    walked = await graph.search(Query("", _WALKED, scope, everything, everything, near=tuple(seeds)))
    share = _share(walked.ids, walked.scores, {*seeds, itself}, set(nearest))
    return None if share is None else share * (count - 1) / near


def _share(ids: Sequence[str], scores: Sequence[float], known: set[str], wanted: set[str]) -> float | None:
    """Of the mass that is not on what was known, the part that is on what is wanted."""
    new = {id_: score for id_, score in zip(ids, scores, strict=True) if id_ not in known}
    mass = sum(new.values())
    return sum(score for id_, score in new.items() if id_ in wanted) / mass if mass else None


def _everything(scope: Scope) -> Filter:
    return normal(access(scope, SENSITIVITIES[-1]))
