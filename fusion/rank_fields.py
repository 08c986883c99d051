"""The fields of documents that ranking needs, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fusion.values import DocId, DocumentFields

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RankFields:
    """:class:`DocumentFields` of many documents, as columns of equal length.

    ``parent`` is an index into ``parents``, -1 for a document that is no chunk; ``chunk`` is -1 where unknown;
    ``created_at`` and ``importance`` are NaN where unknown.
    """

    parent: Ints
    chunk: Ints
    created_at: Floats
    importance: Floats
    parents: Sequence[DocId]

    @classmethod
    def of(cls, fields: Sequence[DocumentFields | None]) -> RankFields | None:
        """Columns from one value for each document; ``None`` if no document has any field."""
        if all(each is None or each == _NO_FIELDS for each in fields):
            return None
        numbers: dict[DocId, int] = {}
        known = [each or _NO_FIELDS for each in fields]
        parent = [-1 if each.parent is None else numbers.setdefault(each.parent, len(numbers)) for each in known]
        return cls(
            np.array(parent, np.int64),
            np.array([-1 if each.chunk is None else each.chunk for each in known], np.int64),
            np.array([np.nan if each.created_at is None else each.created_at for each in known], np.float64),
            np.array([np.nan if each.importance is None else each.importance for each in known], np.float64),
            tuple(numbers),
        )

    def is_known(self) -> npt.NDArray[np.bool_]:
        """Returns for each row whether any field is known."""
        known: npt.NDArray[np.bool_] = (self.parent >= 0) | (self.chunk >= 0) | ~np.isnan(self.created_at)
        return known | ~np.isnan(self.importance)

    def take(self, rows: Ints) -> RankFields:
        """The columns of some rows, in the order of ``rows``."""
        return RankFields(
            self.parent[rows], self.chunk[rows], self.created_at[rows], self.importance[rows], self.parents
        )

    def row(self, row: int) -> DocumentFields:
        """The fields of one row."""
        parent, chunk = int(self.parent[row]), int(self.chunk[row])
        created_at, importance = float(self.created_at[row]), float(self.importance[row])
        return DocumentFields(
            None if parent < 0 else self.parents[parent],
            None if chunk < 0 else chunk,
            None if np.isnan(created_at) else created_at,
            None if np.isnan(importance) else importance,
        )


_NO_FIELDS = DocumentFields()


def join_fields(count: int, parts: Sequence[tuple[Ints, RankFields | None]]) -> RankFields | None:
    """Columns of ``count`` rows from the columns of some of them; ``None`` if no row has any field."""
    known = [(at, fields, fields.is_known()) for at, fields in parts if fields is not None]
    if not any(mask.any() for _, _, mask in known):
        return None
    numbers: dict[DocId, int] = {}
    parent, chunk = np.full(count, -1), np.full(count, -1)
    created_at, importance = np.full(count, np.nan), np.full(count, np.nan)
    for at, fields, mask in known:
        targets = at[mask]
        renumbered = np.array([*(numbers.setdefault(id_, len(numbers)) for id_ in fields.parents), -1], np.int64)
        parent[targets] = renumbered[fields.parent[mask]]
        chunk[targets] = fields.chunk[mask]
        created_at[targets] = fields.created_at[mask]
        importance[targets] = fields.importance[mask]
    return RankFields(parent, chunk, created_at, importance, tuple(numbers))
