"""The filterable values of many records as columns by field, and the evaluation of filters on them.

The vector and graph sources search within the flags that a filter evaluates to.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TypeAlias, assert_never

import msgspec
import numpy as np
import numpy.typing as npt

from adapters.document import Scalar
from adapters.filter import And, Eq, Exists, Filter, In, Not, Or, Range, kind, seconds

Flags: TypeAlias = npt.NDArray[np.bool_]


class _Column(msgspec.Struct, frozen=True):
    """The values of one field as (row, value) pairs sorted by row; a text as its index in the sorted list ``texts``."""

    rows: bytes = b""
    numbers: bytes = b""
    text_rows: bytes = b""
    text_codes: bytes = b""
    texts: list[str] = []
    truth_rows: bytes = b""
    truths: bytes = b""


class ColumnsBuilder:
    """Collects the fields of one record after the other and encodes them for :class:`Columns`."""

    def __init__(self) -> None:
        self._count = 0
        self._pairs: dict[str, dict[str, tuple[list[int], list[Scalar]]]] = {}

    def add(self, fields: Mapping[str, tuple[Scalar, ...]]) -> None:
        """Add the next row."""
        for name, values in fields.items():
            kinds = self._pairs.setdefault(name, {})
            for value in values:
                rows, same_kind = kinds.setdefault(kind(value), ([], []))
                rows.append(self._count)
                same_kind.append(value)
        self._count += 1

    def encode(self) -> bytes:
        """The columns of all rows added so far."""
        return msgspec.msgpack.encode((self._count, {name: _column(kinds) for name, kinds in self._pairs.items()}))


class Columns:
    """The filterable values of ``count`` records; rows count from 0."""

    def __init__(self, count: int, columns: Mapping[str, _Column]) -> None:
        self._count = count
        self._columns = {name: _Arrays(column) for name, column in columns.items()}

    @classmethod
    def decode(cls, content: bytes) -> Columns:
        """Decode what :meth:`ColumnsBuilder.encode` returned. The arrays are views of ``content``."""
        return cls(*msgspec.msgpack.decode(content, type=tuple[int, dict[str, _Column]]))

    def flags(self, condition: Filter) -> Flags:
        """By row, whether a filter (in any form) is true; shape (count,)."""
        match condition:
            case Eq(field, value):
                return self._among(field, (value,))
            case In(field, values):
                return self._among(field, values)
            case Range(field):
                return self._between(field, condition)
            case Exists(field):
                return self._having(field)
            case And(filters):
                return reduce(np.logical_and, map(self.flags, filters), np.ones(self._count, np.bool_))
            case Or(filters):
                return reduce(np.logical_or, map(self.flags, filters), np.zeros(self._count, np.bool_))
            case Not(inner):
                return ~self.flags(inner)
            case _:
                assert_never(condition)

    def counts(self, field: str, flags: Flags) -> dict[str, int]:
        """How many of the flagged rows have each text value of a field; values without such a row are left out."""
        if (column := self._columns.get(field)) is None:
            return {}
        numbers = np.bincount(column.text_codes[flags[column.text_rows]], minlength=len(column.codes))
        return {text: number for text, number in zip(column.codes, numbers.tolist(), strict=True) if number}

    def numbers(self, field: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """The numbers of a field: rows, and the value of each."""
        column = self._columns.get(field, _NO_COLUMN)
        return column.rows, column.numbers

    def texts(self, field: str) -> tuple[tuple[str, ...], tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]]:
        """The texts of a field: the distinct ones; rows, and the index of each row's text."""
        column = self._columns.get(field, _NO_COLUMN)
        return tuple(column.codes), (column.text_rows, column.text_codes)

    def _among(self, field: str, values: tuple[Scalar, ...]) -> Flags:
        flags = np.zeros(self._count, np.bool_)
        if (column := self._columns.get(field)) is None:
            return flags
        codes = [column.codes[value] for value in values if isinstance(value, str) and value in column.codes]
        flags[column.text_rows[np.isin(column.text_codes, codes)]] = True
        numbers = [float(value) for value in values if not isinstance(value, str | bool)]
        flags[column.rows[np.isin(column.numbers, numbers)]] = True
        truths = [value for value in values if isinstance(value, bool)]
        flags[column.truth_rows[np.isin(column.truths, truths)]] = True
        return flags

    def _between(self, field: str, bounds: Range) -> Flags:
        flags = np.zeros(self._count, np.bool_)
        if (column := self._columns.get(field)) is None:
            return flags
        inside = np.ones(len(column.numbers), np.bool_)
        for bound, test in (
            (bounds.gt, np.greater),
            (bounds.gte, np.greater_equal),
            (bounds.lt, np.less),
            (bounds.lte, np.less_equal),
        ):
            if bound is not None:
                inside &= test(column.numbers, seconds(bound))
        flags[column.rows[inside]] = True
        return flags

    def _having(self, field: str) -> Flags:
        flags = np.zeros(self._count, np.bool_)
        if (column := self._columns.get(field)) is not None:
            for rows in (column.rows, column.text_rows, column.truth_rows):
                flags[rows] = True
        return flags


class _Arrays:
    """A column's bytes as arrays, without copying them."""

    def __init__(self, column: _Column) -> None:
        self.rows = np.frombuffer(column.rows, np.int32)
        self.numbers = np.frombuffer(column.numbers, np.float64)
        self.text_rows = np.frombuffer(column.text_rows, np.int32)
        self.text_codes = np.frombuffer(column.text_codes, np.int32)
        self.truth_rows = np.frombuffer(column.truth_rows, np.int32)
        self.truths = np.frombuffer(column.truths, np.bool_)
        self.codes = {text: code for code, text in enumerate(column.texts)}


_NO_COLUMN = _Arrays(_Column())


def _column(kinds: Mapping[str, tuple[list[int], list[Scalar]]]) -> _Column:
    number_rows, numbers = kinds.get("number", ([], []))
    text_rows, texts = kinds.get("text", ([], []))
    truth_rows, truths = kinds.get("truth", ([], []))
    distinct = sorted({str(text) for text in texts})
    codes = {text: code for code, text in enumerate(distinct)}
    return _Column(
        rows=np.asarray(number_rows, np.int32).tobytes(),
        numbers=np.asarray(numbers, np.float64).tobytes(),
        text_rows=np.asarray(text_rows, np.int32).tobytes(),
        text_codes=np.asarray([codes[str(text)] for text in texts], np.int32).tobytes(),
        texts=distinct,
        truth_rows=np.asarray(truth_rows, np.int32).tobytes(),
        truths=np.asarray(truths, np.bool_).tobytes(),
    )
