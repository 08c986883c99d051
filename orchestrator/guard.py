"""How far the graph can be trusted: whether what it holds together is what the vectors hold together, too.

Asked once after bulk writes, without anybody's judgment: passages stand in for queries, the nearest of each by vector
are where the walk starts, and what counts is how much of what it finds besides lies among the next nearest. A graph of
real relationships finds them several times as often as chance would; one whose documents were shuffled, less often.
"""

from __future__ import annotations

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

_PASSAGES = 200
_NEAR = 100
"""Nearest documents by vector that count as found, at most: fewer where there are few documents."""
_SEEDS_SHARE = 10
"""Of those, one in so many is where the walk starts."""
_WALKED = 1_000
_CHARACTERS = 400
"""Of a passage, as a query: some windows of the model's time are saved, and queries are short."""
_LEAST = 50
"""Documents of a scope: with fewer, near and far cannot be told apart."""


class Trust(msgspec.Struct, frozen=True):
    """What was measured: ``lift`` is how many times more often than chance, the median of ``passages``."""

    lift: float
    passages: int
    generation: int

    @property
    def guard(self) -> float:
        """What the graph's part of a score is multiplied with: 0 up to twice chance, 1 from three times on."""
        return min(max(self.lift - 2.0, 0.0), 1.0)


class Guard:
    """The trust at ``path``, where it was measured, followed as it is measured again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self.trust: Trust | None = None
        self.refresh()

    def value(self) -> float:
        """The weight of the graph where a request names none; 1 where nothing was measured."""
        return 1.0 if self.trust is None else self.trust.guard

    def refresh(self) -> None:
        """Read the file if it is another one than the last time.

        :raises Unavailable: if it is damaged.
        """
        stamp = files.stamp(self._path)
        if stamp is None or stamp == self._stamp:
            return
        try:
            self.trust = msgspec.json.decode(self._path.read_bytes(), type=Trust)
        except msgspec.DecodeError as error:
            raise Unavailable(f"{self._path} is damaged, remove it: {error}") from error
        self._stamp = stamp

    async def measure(
        self,
        documents: DocumentReader,
        encoder: QueryEncoder,
        vectors: Retriever,
        graph: Retriever,
        generation: int,
    ) -> None:
        """Measure and keep. Nothing is kept where there are too few documents to tell.

        :raises AdapterError: if a source does not answer.
        """
        records = await documents.sample(_PASSAGES)
        counts = {Scope(record.tenant, record.environment): 0 for record in records}
        for scope in counts:
            counts[scope] = sum((await documents.counts("collection", _everything(scope))).values())
        lifts = [
            await _lift(record, count, encoder, vectors, graph)
            for record in records
            if (count := counts[Scope(record.tenant, record.environment)]) >= _LEAST
        ]
        if lifts:
            trust = Trust(round(median(lifts), 6), len(lifts), generation)
            files.replace(self._path, msgspec.json.encode(trust))
            self.refresh()


async def _lift(record: Record, count: int, encoder: QueryEncoder, vectors: Retriever, graph: Retriever) -> float:
    """How many times more often than chance the walk from a passage's nearest finds its next nearest."""
    scope, itself = Scope(record.tenant, record.environment), record.document.id
    near = min(_NEAR, count // _SEEDS_SHARE)
    everything = _everything(scope)
    vector = await encoder.encode(passage(record.document)[:_CHARACTERS])
    found = await vectors.search(Query("", near + 1, scope, everything, everything, vector))
    nearest = [id_ for id_ in found.ids if id_ != itself][:near]
    seeds = nearest[: max(near // _SEEDS_SHARE, 1)]
    walked = await graph.search(Query("", _WALKED, scope, everything, everything, near=tuple(seeds)))
    return _share(walked.ids, walked.scores, {*seeds, itself}, set(nearest)) * (count - 1) / near


def _share(ids: Sequence[str], scores: Sequence[float], known: set[str], wanted: set[str]) -> float:
    """Of the mass that is not on what was known, the part that is on what is wanted."""
    new = {id_: score for id_, score in zip(ids, scores, strict=True) if id_ not in known}
    mass = sum(new.values())
    return sum(score for id_, score in new.items() if id_ in wanted) / mass if mass else 0.0


def _everything(scope: Scope) -> Filter:
    return normal(access(scope, SENSITIVITIES[-1]))
