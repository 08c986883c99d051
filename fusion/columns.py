"""Rankings and candidates as columns of numbers.

A query has hundreds of candidates and returns ten, so ids and objects are created for the page only. A document is a
number that its :class:`DocumentTable` maps to an id. Sources that read one snapshot of one index share a table, and
their rankings are joined by number; rankings of different tables are joined by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fusion.rank_fields import Floats, Ints, RankFields, join_fields
from fusion.sort import distinct
from fusion.values import DocId, DocumentFields


class DocumentTable(Protocol):
    """Documents by number. A number means the same document for as long as the table exists."""

    def ids(self, docs: Ints) -> list[DocId]:
        """The ids of these documents, in order."""
        ...

    def fields(self, docs: Ints) -> RankFields | None:
        """The fields of these documents, in order; ``None`` if none of them has any."""
        ...


@dataclass(frozen=True, slots=True)
class IdTable:
    """A table of the documents of one ranking or one request: number ``n`` is ``names[n]``."""

    names: Sequence[DocId]
    values: RankFields | None = None

    def ids(self, docs: Ints) -> list[DocId]:
        """See :class:`DocumentTable`."""
        return list(map(self.names.__getitem__, docs.tolist()))

    def fields(self, docs: Ints) -> RankFields | None:
        """See :class:`DocumentTable`."""
        return None if self.values is None else self.values.take(docs)


_EMPTY = IdTable(())


@dataclass(frozen=True, slots=True)
class Documents:
    """Some documents of a table, in a meaningful order."""

    docs: Ints
    table: DocumentTable

    @classmethod
    def of_ids(cls, ids: Iterable[DocId]) -> Documents:
        """Documents by id."""
        names = tuple(ids)
        return cls(np.arange(len(names)), IdTable(names))

    def __len__(self) -> int:
        return len(self.docs)

    @property
    def ids(self) -> tuple[DocId, ...]:
        """Their ids, in order."""
        return tuple(self.table.ids(self.docs))


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """One document of a ranking. ``rank`` starts at 1; ``score`` is the source's own, on its own scale."""

    id: DocId
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The result of one source, best first, as columns of equal length.

    :param docs: numbers of documents in ``table``, each once.
    :param scores: on the source's own scale, never rising.
    :param ranks: from 1. Not always 1, 2, 3: see :func:`fusion.collections.merge_collections`.
    :param entity_coverage: in [0, 1], the fraction of the query's information that the source knows as entities; 0 for
        sources that know none.
    :raises ValueError: if the columns differ in length.
    """

    source: str
    docs: Ints
    scores: Floats
    ranks: Ints
    table: DocumentTable
    entity_coverage: float = 0.0

    def __post_init__(self) -> None:
        for name, column in (("scores", self.scores), ("ranks", self.ranks)):
            if len(column) != len(self.docs):
                raise ValueError(f"ranking {self.source!r} has {len(self.docs)} ids but {len(column)} {name}")

    @classmethod
    def empty(cls, source: str, entity_coverage: float = 0.0) -> Ranking:
        """A ranking without documents."""
        return cls(source, np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), _EMPTY, entity_coverage)

    @classmethod
    def of_docs(
        cls, source: str, docs: Ints, scores: npt.NDArray[np.floating], table: DocumentTable, coverage: float = 0.0
    ) -> Ranking:
        """A ranking of numbered documents with the ranks 1, 2, 3."""
        return cls(source, docs, scores.astype(np.float64), np.arange(1, len(docs) + 1), table, coverage)

    @classmethod
    def of_ids(
        cls,
        source: str,
        ids: Sequence[DocId],
        scores: Sequence[float],
        entity_coverage: float = 0.0,
        fields: Mapping[DocId, DocumentFields] | None = None,
        ranks: Sequence[int] = (),
    ) -> Ranking:
        """A ranking of documents by id, with a table of its own.

        :param ranks: 1, 2, 3 if empty.
        :raises ValueError: if the columns differ in length, or an id occurs twice.
        """
        if len(set(ids)) != len(ids):
            raise ValueError(f"ranking {source!r} names a document twice")
        values = RankFields.of([fields.get(id_) for id_ in ids]) if fields else None
        return cls(
            source,
            np.arange(len(ids)),
            np.array(scores, np.float64),
            np.array(ranks, np.int64) if ranks else np.arange(1, len(ids) + 1),
            IdTable(tuple(ids), values),
            entity_coverage,
        )

    def __len__(self) -> int:
        return len(self.docs)

    def __iter__(self) -> Iterator[RankedDocument]:
        for id_, rank, score in zip(self.ids, self.ranks.tolist(), self.scores.tolist(), strict=True):
            yield RankedDocument(id_, rank, score)

    @property
    def ids(self) -> tuple[DocId, ...]:
        """The ids, best first. They are created on each call: for explanations and tests."""
        return tuple(self.table.ids(self.docs))

    @property
    def fields(self) -> RankFields | None:
        """The fields of the documents, in the order of the ranking."""
        return self.table.fields(self.docs)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Every document that at least one source returned, one row each.

    :param docs: by row, the number in ``table``.
    :param rows: by source, the row of each document of its ranking, best first.
    :param ranks: by source, the ranks from 1, parallel to ``rows``.
    :param scores: by source, its own scores, parallel to ``rows``.
    :param entity_coverage: by source.
    """

    docs: Ints
    table: DocumentTable
    fields: RankFields | None
    rows: Mapping[str, Ints]
    ranks: Mapping[str, Ints]
    scores: Mapping[str, Floats]
    entity_coverage: Mapping[str, float]
    _positions: dict[str, Ints] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The results of :meth:`positions`, by source."""

    @classmethod
    def of(cls, rankings: Sequence[Ranking]) -> Candidates:
        """Join rankings of different sources. The order of ``rankings`` never matters."""
        ordered = sorted(rankings, key=lambda ranking: ranking.source)
        tables = {id(ranking.table): ranking.table for ranking in ordered if len(ranking)}
        if len(tables) > 1:
            docs, rows, table, fields = join_by_id(ordered)
        else:
            docs, rows = _join_by_number(ordered)
            table = next(iter(tables.values()), _EMPTY)
            fields = table.fields(docs)
        return cls(
            docs,
            table,
            fields,
            {ranking.source: at for ranking, at in zip(ordered, rows, strict=True)},
            {ranking.source: ranking.ranks for ranking in ordered},
            {ranking.source: ranking.scores for ranking in ordered},
            {ranking.source: ranking.entity_coverage for ranking in ordered},
        )

    def __len__(self) -> int:
        return len(self.docs)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources with a ranking, sorted. Sums are added in this order, so they are reproducible."""
        return tuple(self.rows)

    def ids(self, rows: Ints) -> list[DocId]:
        """The ids of some rows, in order."""
        return self.table.ids(self.docs[rows])

    def documents(self, rows: Ints) -> Documents:
        """The documents of some rows, in order."""
        return Documents(self.docs[rows], self.table)

    def positions(self, source: str) -> Ints:
        """Each row's position in a source's ranking, from 0; the number of candidates where it has none."""
        positions = self._positions.get(source)
        if positions is None:
            positions = self._positions[source] = np.full(len(self.docs), len(self.docs))
            positions[self.rows[source]] = np.arange(len(self.rows[source]))
        return positions


def extended(first: Sequence[Ranking], more: Sequence[Ranking]) -> list[Ranking]:
    """Rankings, each with the documents at its end that a further search of its source found.

    Documents that any of the first rankings has are left out; the others have no higher scores than the last of those.

    :param more: rankings of the same sources, in any order.
    """
    rankings = [*first, *more]
    if len({id(ranking.table) for ranking in rankings if len(ranking)}) > 1:
        _, numbers, table, _ = join_by_id(rankings)
        rankings = [replace(each, docs=docs, table=table) for each, docs in zip(rankings, numbers, strict=True)]
    known = np.concatenate([ranking.docs for ranking in rankings[: len(first)]])
    further = {ranking.source: ranking for ranking in rankings[len(first) :] if len(ranking)}
    return [
        _with_further(ranking, further[ranking.source], known) if ranking.source in further else ranking
        for ranking in rankings[: len(first)]
    ]


def _with_further(ranking: Ranking, further: Ranking, known: Ints) -> Ranking:
    new = ~np.isin(further.docs, known)
    scores = further.scores[new]
    last_rank = 0
    if len(ranking):
        scores, last_rank = np.minimum(scores, ranking.scores[-1]), int(ranking.ranks.max())
    return Ranking(
        ranking.source,
        np.concatenate((ranking.docs, further.docs[new])),
        np.concatenate((ranking.scores, scores)),
        np.concatenate((ranking.ranks, last_rank + np.arange(1, len(scores) + 1))),
        further.table,
        ranking.entity_coverage,
    )


def _join_by_number(rankings: Sequence[Ranking]) -> tuple[Ints, list[Ints]]:
    """Distinct numbers, ascending, and the row of each document of each ranking."""
    if not rankings:
        return np.zeros(0, np.int64), []
    if len(rankings) == 1:
        return rankings[0].docs, [np.arange(len(rankings[0]))]
    docs, rows = distinct(np.concatenate([ranking.docs for ranking in rankings]))
    ends = accumulate(map(len, rankings))
    return docs, [rows[end - len(ranking) : end] for ranking, end in zip(rankings, ends, strict=True)]


def join_by_id(rankings: Sequence[Ranking]) -> tuple[Ints, list[Ints], DocumentTable, RankFields | None]:
    """Join rankings of different tables: their ids are numbered in the order in which they first occur.

    If several rankings have fields of a document, those of the last one are used.

    :returns: the numbers, the number of each document of each ranking, a table of all documents, and their fields.
    """
    ids = [ranking.ids for ranking in rankings]
    names = tuple(dict.fromkeys(chain.from_iterable(ids)))
    numbers = dict(zip(names, range(len(names)), strict=True))
    rows = [np.fromiter(map(numbers.__getitem__, each), np.int64, len(each)) for each in ids]
    values = join_fields(len(numbers), [(at, ranking.fields) for at, ranking in zip(rows, rankings, strict=True)])
    return np.arange(len(numbers)), rows, IdTable(names, values), values
