"""The filterable values of many records as columns by field, and the evaluation of filters on them.

The vector and graph sources search within the flags that a filter evaluates to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence, Set
from functools import reduce
from typing import TypeAlias, assert_never

import msgspec
import numpy as np
import numpy.typing as npt

from adapters.model.document import Scalar
from adapters.model.filter import And, Eq, Exists, Filter, In, Not, Or, Range, kind, seconds
from adapters.model.numbers import split

Flags: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]

_MAX_DECODED = 256
"""Maximum number of decoded columns of a segment: documents may have any number of metadata keys."""


class _Column(msgspec.Struct, frozen=True, array_like=True):
    """The values of one field as (row, value) pairs sorted by row; a text as its index in the sorted list ``texts``.

    A number is a double and a rest, see :func:`adapters.model.numbers.split`; ``rests`` is empty if all are 0.
    """

    rows: bytes = b""
    numbers: bytes = b""
    text_rows: bytes = b""
    text_codes: bytes = b""
    texts: list[str] = []
    truth_rows: bytes = b""
    truths: bytes = b""
    rests: bytes = b""


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    """All columns: the sorted names in UTF-8 one after the other, the encoded columns likewise, and where each ends."""

    count: int
    names: memoryview
    name_ends: memoryview
    columns: memoryview
    column_ends: memoryview


class ColumnsBuilder:
    """Collects the fields of one record after the other and encodes them for :class:`Columns`."""

    def __init__(self) -> None:
        self._count = 0
        self._pairs: dict[str, list[tuple[int, Scalar]]] = {}

    def add(self, fields: Mapping[str, tuple[Scalar, ...]]) -> None:
        """Add the next row."""
        for name, values in fields.items():
            self._pairs.setdefault(name, []).extend((self._count, value) for value in values)
        self._count += 1

    def encode(self) -> bytes:
        """The columns of all rows added so far."""
        by_name = sorted((name.encode(), name) for name in self._pairs)
        columns = [msgspec.msgpack.encode(_column(self._pairs[name])) for _, name in by_name]
        names = [encoded for encoded, _ in by_name]
        stored = (self._count, b"".join(names), _ends(names), b"".join(columns), _ends(columns))
        return msgspec.msgpack.encode(stored)


def _ends(parts: Sequence[bytes]) -> bytes:
    return np.cumsum([len(part) for part in parts], dtype=np.int64).tobytes()


class Columns:
    """The filterable values of ``count`` records; rows count from 0. A column is decoded when it is first needed."""

    def __init__(self, stored: _Stored) -> None:
        self._count = stored.count
        self._stored = stored
        self._name_ends = np.frombuffer(stored.name_ends, np.int64)
        self._column_ends = np.frombuffer(stored.column_ends, np.int64)
        self._decoded: dict[str, _Arrays] = {}

    @classmethod
    def decode(cls, content: bytes | memoryview) -> Columns:
        """Decode what :meth:`ColumnsBuilder.encode` returned, without copying it."""
        return cls(msgspec.msgpack.decode(content, type=_Stored))

    def _column(self, name: str) -> _Arrays:
        """The column of a field; an empty one if no record has it."""
        column = self._decoded.get(name)
        if column is None:
            column = self._find(name.encode("utf-8", "surrogatepass"))
            if len(self._decoded) >= _MAX_DECODED:
                self._decoded.clear()
            self._decoded[name] = column
        return column

    def _find(self, name: bytes) -> _Arrays:
        index = bisect_left(range(len(self._name_ends)), name, key=self._name)
        if index == len(self._name_ends) or self._name(index) != name:
            return _NO_COLUMN
        start = self._column_ends[index - 1] if index else 0
        return _Arrays(msgspec.msgpack.decode(self._stored.columns[start : self._column_ends[index]], type=_Column))

    def _name(self, index: int) -> bytes:
        start = self._name_ends[index - 1] if index else 0
        return bytes(self._stored.names[start : self._name_ends[index]])

    def flags(self, condition: Filter) -> Flags:
        """Returns for each row whether a filter (in any form) is true; shape (count,)."""
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
        """The number of flagged rows with each text value of a field; values without such a row are left out."""
        column = self._column(field)
        numbers = np.bincount(column.text_codes[flags[column.text_rows]], minlength=len(column.codes))
        return {text: number for text, number in zip(column.codes, numbers.tolist(), strict=True) if number}

    def numbers(self, field: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """The numbers of a field: rows, and the value of each, without its rest."""
        column = self._column(field)
        return column.rows, column.numbers

    def texts(self, field: str) -> tuple[tuple[str, ...], tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]]:
        """The texts of a field: the distinct ones; rows, and the index of each row's text."""
        column = self._column(field)
        return tuple(column.codes), (column.text_rows, column.text_codes)

    def chosen_texts(self, field: str, flags: Flags) -> tuple[list[str], Ints, Ints]:
        """The texts of a field in the flagged rows: the distinct ones, sorted; the rows, and the index of each row's
        text."""
        column = self._column(field)
        chosen = flags[column.text_rows]
        used, codes = np.unique(column.text_codes[chosen], return_inverse=True)
        return [column.texts[code] for code in used.tolist()], column.text_rows[chosen].astype(np.int64), codes

    def chosen_numbers(self, field: str, flags: Flags) -> tuple[Ints, npt.NDArray[np.float64], Ints]:
        """The numbers of a field in the flagged rows: the rows, and the double and the rest of each."""
        column = self._column(field)
        chosen = flags[column.rows]
        rows, rests = column.rows[chosen].astype(np.int64), column.rests[chosen].astype(np.int64)
        return rows, column.numbers[chosen], rests

    def chosen_truths(self, field: str, flags: Flags) -> tuple[Ints, Ints]:
        """The truth values of a field in the flagged rows: the rows, and 0 or 1 for each."""
        column = self._column(field)
        chosen = flags[column.truth_rows]
        return column.truth_rows[chosen].astype(np.int64), column.truths[chosen].astype(np.int64)

    def _among(self, field: str, values: tuple[Scalar, ...]) -> Flags:
        flags = np.zeros(self._count, np.bool_)
        column = self._column(field)
        by_kind: dict[str, list[Scalar]] = {}
        for value in values:
            by_kind.setdefault(kind(value), []).append(value)
        if codes := [code for text in by_kind.get("text", ()) if (code := column.codes.get(str(text))) is not None]:
            is_chosen = np.zeros(len(column.codes), np.bool_)
            is_chosen[codes] = True
            flags[column.text_rows[is_chosen[column.text_codes]]] = True
        if len(column.numbers) and (numbers := by_kind.get("number")):
            flags[column.rows[column.equal_to({split(each) for each in numbers if not isinstance(each, str)})]] = True
        if len(column.truths) and (truths := by_kind.get("truth")):
            flags[column.truth_rows[np.isin(column.truths, truths)]] = True
        return flags

    def _between(self, field: str, bounds: Range) -> Flags:
        flags = np.zeros(self._count, np.bool_)
        column = self._column(field)
        inside = np.ones(len(column.numbers), np.bool_)
        for bound, test in (
            (bounds.gt, np.greater),
            (bounds.gte, np.greater_equal),
            (bounds.lt, np.less),
            (bounds.lte, np.less_equal),
        ):
            if bound is not None:
                double, rest = split(seconds(bound))
                at_rest = (column.numbers == double) & test(column.rests, rest)
                inside &= (test(column.numbers, double) & (column.numbers != double)) | at_rest
        flags[column.rows[inside]] = True
        return flags

    def _having(self, field: str) -> Flags:
        flags = np.zeros(self._count, np.bool_)
        column = self._column(field)
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
        self.has_rests = bool(column.rests)
        self.rests = np.frombuffer(column.rests, np.int16) if column.rests else np.zeros(len(self.numbers), np.int16)
        self.texts = column.texts
        self.codes = {text: code for code, text in enumerate(column.texts)}

    def equal_to(self, numbers: Set[tuple[float, int]]) -> npt.NDArray[np.int64]:
        """The indices of the numbers that are one of these, each a double and a rest."""
        doubles = [double for double, rest in numbers if not rest or self.has_rests]
        found = np.flatnonzero(np.isin(self.numbers, doubles))
        if not self.has_rests:
            return found
        pairs = zip(self.numbers[found].tolist(), self.rests[found].tolist(), strict=True)
        return found[np.fromiter((pair in numbers for pair in pairs), np.bool_, len(found))]


_NO_COLUMN = _Arrays(_Column())


def _column(pairs: Sequence[tuple[int, Scalar]]) -> _Column:
    kinds: dict[str, tuple[list[int], list[Scalar]]] = {}
    for row, value in pairs:
        rows, values = kinds.setdefault(kind(value), ([], []))
        rows.append(row)
        values.append(value)
    number_rows, numbers = kinds.get("number", ([], []))
    text_rows, texts = kinds.get("text", ([], []))
    truth_rows, truths = kinds.get("truth", ([], []))
    split_numbers = [split(number) for number in numbers if not isinstance(number, str)]
    rests = [rest for _, rest in split_numbers]
    distinct = sorted({str(text) for text in texts})
    codes = {text: code for code, text in enumerate(distinct)}
    return _Column(
        rows=np.asarray(number_rows, np.int32).tobytes(),
        numbers=np.asarray([double for double, _ in split_numbers], np.float64).tobytes(),
        text_rows=np.asarray(text_rows, np.int32).tobytes(),
        text_codes=np.asarray([codes[str(text)] for text in texts], np.int32).tobytes(),
        texts=distinct,
        truth_rows=np.asarray(truth_rows, np.int32).tobytes(),
        truths=np.asarray(truths, np.bool_).tobytes(),
        rests=np.asarray(rests, np.int16).tobytes() if any(rests) else b"",
    )
