"""Lines of batches: how they are read, and how many are processed beside other searches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.schema.decode import InvalidInput
from orchestrator.service.batch import MAX_LINE_BYTES, Line, split_lines

pytestmark = pytest.mark.anyio


async def chunks_of(parts: Sequence[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def split(parts: Sequence[bytes]) -> list[Line]:
    async def run() -> list[Line]:
        return [line async for line in split_lines(chunks_of(parts))]

    return anyio.run(run)


@given(st.lists(st.sampled_from([b"\n", b"a", b"bc", b" ", b"\r\n", b""]), max_size=30), st.data())
def test_lines_are_the_same_however_the_text_is_cut(pieces: list[bytes], data: st.DataObject) -> None:
    text = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    expected = [(number, line) for number, line in enumerate(text.split(b"\n"), start=1) if line.strip()]
    assert split(parts) == expected


def test_a_byte_order_mark_is_removed() -> None:
    assert split([b"\xef", b"\xbb\xbfa\n\xef\xbb\xbfb"]) == [(1, b"a"), (2, b"\xef\xbb\xbfb")]
    assert split([b"\xef\xbb\xbf\nb"]) == [(2, b"b")]


def test_a_line_that_is_too_long_is_reported_and_not_kept() -> None:
    part = b"x" * 400_000
    (first, second, third) = split([b"a\n", part, part, part, part, b"\nb"])
    assert (first, third) == ((1, b"a"), (3, b"b"))
    number, error = second
    assert number == 2
    assert isinstance(error, InvalidInput)
    assert str(error) == f"the line has more than the {MAX_LINE_BYTES} bytes allowed"
    assert split([b"x" * MAX_LINE_BYTES]) == [(1, b"x" * MAX_LINE_BYTES)]
