"""Measures the trust of a graph: whether it connects documents that are also similar by vector.

It runs after bulk writes and needs no judgments: passages, or the vectors that documents bring, are used as queries,
the nearest documents of each by vector are the seeds of a walk, and the measure is the fraction of the walk's new mass
that is on the next nearest documents. A graph of real relationships finds them several times as often as chance would;
a shuffled one, less often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from adapters import Record, Scope, Viewer
from adapters.model.document import passage
from adapters.model.filter import Filter
from adapters.model.vectors import unit
from adapters.ports import DocumentReader, QueryEncoder, Retriever, SourceQuery
from fusion.columns import Documents
from orchestrator.auth.visibility import access_filter
from orchestrator.measurement.graph_trust import ScopeTrust, TrustMeasurements
from orchestrator.measurement.scope_sample import sample_by_access

_PASSAGES = 200
"""Documents of one scope that are used as queries."""
_MAX_NEAREST = 100
"""Nearest documents by vector that count as found; a tenth of the documents if there are few."""
_SEED_FRACTION = 10
"""One in this number of documents is a seed."""
_WALK_DEPTH = 1_000
_MAX_CHARS = 400
"""Maximum length of a passage that is used as a query: the model's time grows with the length."""
_MIN_WALKS = 20
"""Minimum number of walks that reached other documents: with fewer, the trust is unknown."""


@dataclass(frozen=True, slots=True)
class TrustMeasurement:
    """Measures the trust of the graph of every scope."""

    documents: DocumentReader
    encoder: QueryEncoder
    vectors: Retriever
    graph: Retriever

    async def run(self, generation: int) -> TrustMeasurements:
        """Measure every scope that has enough documents in a sample.

        :param generation: of the index.
        :raises AdapterError: if a source is unavailable.
        """
        scopes = []
        for (scope, clearance), sample in (await sample_by_access(self.documents)).items():
            visible = access_filter(scope, Viewer(clearance))
            lifts = [await self._lift(record, visible, sample.count) for record in _evenly_chosen(sample.records)]
            known = [lift for lift in lifts if lift is not None]
            if len(known) >= _MIN_WALKS:
                lift, highest = round(median(known), 6), (sample.count - 1) / _nearest_count(sample.count)
                scopes.append(ScopeTrust(scope.tenant, scope.environment, clearance, lift, len(known), highest))
        return TrustMeasurements(generation, scopes)

    async def _lift(self, record: Record, visible: Filter, count: int) -> float | None:
        """How many times more often than by chance a walk from a passage's nearest documents finds the next nearest.

        ``None`` if it reaches no other document.
        """
        scope, own_id = Scope(record.tenant, record.environment), record.doc_id
        size = _nearest_count(count)
        own = record.whole.vector
        vector = self.encoder.encode(passage(record.document)[:_MAX_CHARS]) if own is None else unit(own)
        ranking = await self.vectors.search(SourceQuery("", size + 1, scope, visible, visible, vector))
        nearest = [id_ for id_ in ranking.ids if id_ != own_id][:size]
        seeds = nearest[: max(size // _SEED_FRACTION, 1)]
        walk = await self.graph.search(
            SourceQuery("", _WALK_DEPTH, scope, visible, visible, seeds=Documents.of_ids(seeds))
        )
        fraction = _fraction_on(walk.ids, walk.scores.tolist(), {*seeds, own_id}, set(nearest))
        return None if fraction is None else fraction * (count - 1) / size


def _nearest_count(count: int) -> int:
    """The number of nearest documents by vector that count as found, in a scope of ``count`` documents."""
    return min(_MAX_NEAREST, count // _SEED_FRACTION)


def _evenly_chosen(records: Sequence[Record]) -> Sequence[Record]:
    return records[:: max(len(records) // _PASSAGES, 1)][:_PASSAGES]


def _fraction_on(ids: Sequence[str], scores: Sequence[float], known: set[str], expected: set[str]) -> float | None:
    """The fraction of the mass outside ``known`` that is on ``expected``."""
    new = {id_: score for id_, score in zip(ids, scores, strict=True) if id_ not in known}
    mass = sum(new.values())
    return sum(score for id_, score in new.items() if id_ in expected) / mass if mass else None
