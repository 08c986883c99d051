from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache import Entry
from cache.codec import VERSION, decode, encode
from cache.key import key
from cache.policy import jittered


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (90.0, "expired"),
        (96.0, "fresh"),
        (100.0, "fresh"),
        (109.9, "fresh"),
        (110.0, "stale"),
        (114.9, "stale"),
        (115.0, "expired"),
    ],
)
def test_an_entry_is_fresh_then_stale_then_expired(now: float, expected: str) -> None:
    """Born at 100, fresh for 10 seconds, usable for 5 more; clocks may differ by 5."""
    entry = Entry(b"", born=100.0, fresh_s=10.0, stale_s=5.0)
    assert entry.freshness(now) == expected
    assert entry.left_s(now) == max(0.0, 115.0 - now)


@given(st.floats(0, 1e6), st.floats(0, 1))
def test_jitter_takes_a_tenth_at_most(seconds: float, draw: float) -> None:
    assert 0.9 * seconds <= jittered(seconds, draw) <= seconds


times = st.floats(0, 1e9, width=32)


@given(st.binary(max_size=50), st.floats(0, 1e10), times, times)
def test_what_was_encoded_is_decoded(content: bytes, born: float, fresh: float, stale: float) -> None:
    entry = Entry(content, born, fresh, stale)
    assert decode(encode(entry)) == entry


@given(st.binary(max_size=80))
def test_garbage_is_nothing(written: bytes) -> None:
    assert decode(written) is None


@given(st.binary(min_size=1, max_size=50), st.data())
def test_a_changed_byte_of_the_content_is_noticed(content: bytes, data: st.DataObject) -> None:
    written = bytearray(encode(Entry(content, 1.0, 1.0, 1.0)))
    place = data.draw(st.integers(len(written) - len(content), len(written) - 1))
    written[place] ^= data.draw(st.integers(1, 255))
    assert decode(bytes(written)) is None


def test_another_version_is_nothing() -> None:
    written = encode(Entry(b"x", 1.0, 1.0, 1.0))
    assert written[0] == VERSION
    assert decode(bytes([VERSION + 1]) + written[1:]) is None


parts = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text('ab,[]"', max_size=3),
    lambda inner: st.lists(inner, max_size=3),
)


@given(st.lists(parts, max_size=3), st.lists(parts, max_size=3))
def test_two_keys_are_equal_only_if_their_values_are(one: list[object], other: list[object]) -> None:
    assert (key(*one) == key(*other)) == (repr(one) == repr(other))


def test_the_order_of_a_mapping_is_nothing() -> None:
    assert key({"a": 1, "b": 2}) == key({"b": 2, "a": 1})
    assert key({"a": 1}) != key({"a": True})
