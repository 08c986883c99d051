"""The filterable values of many records, by field, and what a filter makes of them: a mask.

This is the embedded compiler of :mod:`adapters.filter`: the vector and graph sources search inside its masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TypeAlias, assert_never

import msgspec
import numpy as np
import numpy.typing as npt

from adapters.document import Scalar
from adapters.filter import And, Eq, Exists, Filter, In, Not, Or, Range, kind, seconds

Flags: TypeAlias = npt.NDArray[np.bool_]


class _Column(msgspec.Struct, frozen=True):
    """The values of one field, as (row, value) pairs sorted by row: texts by their place in a sorted table."""

    rows: bytes = b""
    numbers: bytes = b""
    text_rows: bytes = b""
    text_codes: bytes = b""
    texts: list[str] = []
    truth_rows: bytes = b""
    truths: bytes = b""


class ColumnsBuilder:
    """Gathers the fields of one record after the other, then gives the bytes that :class:`Columns` reads."""

    def __init__(self) -> None:
        self._count = 0
        self._pairs: dict[str, dict[str, tuple[list[int], list[Scalar]]]] = {}

    def add(self, fields: Mapping[str, tuple[Scalar, ...]]) -> None:
        """The next row."""
        for name, values in fields.items():
            kinds = self._pairs.setdefault(name, {})
            for value in values:
                rows, held = kinds.setdefault(kind(value), ([], []))
                rows.append(self._count)
                held.append(value)
        self._count += 1

    def encode(self) -> bytes:
        """All rows so far."""
        return msgspec.msgpack.encode((self._count, {name: _column(kinds) for name, kinds in self._pairs.items()}))


class Columns:
    """Filterable values of ``count`` records, rows from 0, read from what :class:`ColumnsBuilder` wrote."""

    def __init__(self, count: int, columns: Mapping[str, _Column]) -> None:
        self._count = count
        self._columns = {name: _Arrays(column) for name, column in columns.items()}

    @classmethod
    def decode(cls, content: bytes) -> Columns:
        """Read them."""
        return cls(*msgspec.msgpack.decode(content, type=tuple[int, dict[str, _Column]]))

    def flags(self, wanted: Filter) -> Flags:
        """By row, whether ``wanted`` (in any form) holds."""
        match wanted:
            case Eq(field, value):
                return self._among(field, (value,))
            case In(field, values):
                return self._among(field, values)
            case Range(field):
                return self._between(field, wanted)
            case Exists(field):
                return self._having(field)
            case And(filters):
                return reduce(np.logical_and, map(self.flags, filters), np.ones(self._count, np.bool_))
            case Or(filters):
                return reduce(np.logical_or, map(self.flags, filters), np.zeros(self._count, np.bool_))
            case Not(inner):
                return ~self.flags(inner)
            case _:
                assert_never(wanted)

    def counts(self, field: str, flags: Flags) -> dict[str, int]:
        """How many of the flagged rows have each text value of a field; values of none are left out."""
        if (column := self._columns.get(field)) is None:
            return {}
        codes, numbers = np.unique(column.text_codes[flags[column.text_rows]], return_counts=True)
        texts = list(column.codes)
        return {texts[code]: int(number) for code, number in zip(codes, numbers, strict=True)}

    def pairs(self, field: str) -> Iterator[tuple[int, Scalar]]:
        """Row and value, by row: numbers, then texts."""
        if (column := self._columns.get(field)) is not None:
            texts = list(column.codes)
            yield from zip(column.rows.tolist(), column.numbers.tolist(), strict=True)
            yield from zip(column.text_rows.tolist(), map(texts.__getitem__, column.text_codes.tolist()), strict=True)

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
    """A column's bytes as arrays that share them."""

    def __init__(self, column: _Column) -> None:
        self.rows = np.frombuffer(column.rows, np.int32)
        self.numbers = np.frombuffer(column.numbers, np.float64)
        self.text_rows = np.frombuffer(column.text_rows, np.int32)
        self.text_codes = np.frombuffer(column.text_codes, np.int32)
        self.truth_rows = np.frombuffer(column.truth_rows, np.int32)
        self.truths = np.frombuffer(column.truths, np.bool_)
        self.codes = {text: code for code, text in enumerate(column.texts)}


def _column(kinds: Mapping[str, tuple[list[int], list[Scalar]]]) -> _Column:
    number_rows, numbers = kinds.get("number", ([], []))
    text_rows, texts = kinds.get("text", ([], []))
    truth_rows, truths = kinds.get("truth", ([], []))
    table = sorted({str(text) for text in texts})
    codes = {text: code for code, text in enumerate(table)}
    return _Column(
        rows=np.asarray(number_rows, np.int32).tobytes(),
        numbers=np.asarray(numbers, np.float64).tobytes(),
        text_rows=np.asarray(text_rows, np.int32).tobytes(),
        text_codes=np.asarray([codes[str(text)] for text in texts], np.int32).tobytes(),
        texts=table,
        truth_rows=np.asarray(truth_rows, np.int32).tobytes(),
        truths=np.asarray(truths, np.bool_).tobytes(),
    )
