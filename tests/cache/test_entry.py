from __future__ import annotations

from hashlib import blake2b

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cache import CacheEntry, hash_key
from cache.codec import FORMAT, decode, encode
from cache.entry import jittered


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
    """Created at 100, fresh for 10 seconds, stale for 5 more; clocks may differ by 5."""
    entry = CacheEntry(b"", created_at=100.0, ttl_s=10.0, stale_while_revalidate_s=5.0)
    assert entry.freshness(now) == expected
    assert entry.remaining_s(now) == max(0.0, 115.0 - now)


durations = st.floats(0, 1e9, width=32)
ORDER = ("fresh", "stale", "expired")


@given(st.floats(0, 1e10), durations, durations, st.floats(-4.9, 1e10), st.floats(-4.9, 1e10))
def test_freshness_and_remaining_time_never_grow_with_time(
    created_at: float, ttl_s: float, stale_s: float, one_age: float, other_age: float
) -> None:
    entry = CacheEntry(b"", created_at, ttl_s, stale_s)
    earlier, later = sorted((created_at + one_age, created_at + other_age))
    assert ORDER.index(entry.freshness(earlier)) <= ORDER.index(entry.freshness(later))
    assert entry.remaining_s(earlier) >= entry.remaining_s(later) >= 0.0


@given(st.floats(0, 1e6), st.floats(0, 1))
def test_jitter_takes_at_most_a_tenth(seconds: float, draw: float) -> None:
    assert 0.9 * seconds <= jittered(seconds, draw) <= seconds


entries = st.builds(CacheEntry, st.binary(max_size=50), st.floats(0, 1e10), durations, durations)


keys = st.binary(max_size=20)


@given(keys, entries)
def test_an_encoded_entry_is_decoded_to_itself(key: bytes, entry: CacheEntry) -> None:
    assert decode(key, encode(key, entry)) == entry


@given(keys, keys, entries)
def test_an_entry_of_another_key_is_not_decoded(key: bytes, other: bytes, entry: CacheEntry) -> None:
    """An entry of another key must not be returned: it may be the response for another tenant."""
    assume(key != other)
    assert decode(other, encode(key, entry)) is None


@given(keys, entries, keys, entries)
def test_different_entries_have_different_bytes(
    key: bytes, entry: CacheEntry, other_key: bytes, other: CacheEntry
) -> None:
    same = (key, repr(entry)) == (other_key, repr(other))
    assert (encode(key, entry) == encode(other_key, other)) == same


@given(st.binary(max_size=80))
def test_garbage_is_not_decoded(garbage: bytes) -> None:
    assert decode(b"", garbage) is None


@given(entries, st.data())
def test_a_truncated_or_extended_entry_is_not_decoded(entry: CacheEntry, data: st.DataObject) -> None:
    encoded = encode(b"k", entry)
    assert decode(b"k", encoded[: data.draw(st.integers(0, len(encoded) - 1))]) is None
    assert decode(b"k", encoded + data.draw(st.binary(min_size=1, max_size=20))) is None


@given(st.binary(min_size=1, max_size=50), st.data())
def test_a_changed_byte_of_the_content_is_detected(content: bytes, data: st.DataObject) -> None:
    encoded = bytearray(encode(b"k", CacheEntry(content, 1.0, 1.0, 1.0)))
    index = data.draw(st.integers(len(encoded) - len(content), len(encoded) - 1))
    encoded[index] ^= data.draw(st.integers(1, 255))
    assert decode(b"k", bytes(encoded)) is None


@given(st.integers(0, 255), entries)
def test_another_format_is_not_decoded(format_: int, entry: CacheEntry) -> None:
    assume(format_ != FORMAT)
    encoded = encode(b"k", entry)
    assert encoded[0] == FORMAT
    assert decode(b"k", bytes([format_]) + encoded[1:]) is None


def test_the_bytes_of_an_entry_stay_what_other_processes_can_read() -> None:
    """Format 2, created_at 2.0 as 64-bit float, 3.0 and 0.5 as 32-bit floats, CRC-32 of ``x``, the length of the key,
    the key, the content."""
    encoded = "024000000000000000404000003f0000008cdc168300016b78"
    assert encode(b"k", CacheEntry(b"x", 2.0, 3.0, 0.5)).hex() == encoded


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text('ab,[]"', max_size=3),
    lambda inner: st.lists(inner, max_size=3),
)


@given(st.lists(values, max_size=3), st.lists(values, max_size=3))
def test_two_keys_are_equal_only_if_their_values_are(one: list[object], other: list[object]) -> None:
    assert (hash_key(*one) == hash_key(*other)) == (repr(one) == repr(other))


@given(st.lists(values, min_size=1, max_size=3), st.data())
def test_one_changed_value_changes_the_key(one: list[object], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(one) - 1))
    changed = data.draw(values.filter(lambda value: repr(value) != repr(one[index])))
    assert hash_key(*one) != hash_key(*one[:index], changed, *one[index + 1 :])
    assert len(hash_key(*one)) == 16


@pytest.mark.parametrize("length", [0, 2_000, 5_000, 100_000])
def test_a_key_is_a_hash_of_everything_whatever_its_length(length: int) -> None:
    encoded = msgspec.json.encode(("x" * length,))
    assert hash_key("x" * length) == blake2b(encoded, digest_size=16).digest()


def test_the_order_of_a_mapping_does_not_change_the_key() -> None:
    assert hash_key({"a": 1, "b": 2}) == hash_key({"b": 2, "a": 1})
    assert hash_key({"a": 1}) != hash_key({"a": True})
