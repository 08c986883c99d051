from __future__ import annotations

from adapters.servers.fingerprints import fingerprint, prefixed_fingerprint


def test_a_fingerprint_never_changes() -> None:
    """Servers store it: with another one, no index and no node would be found again."""
    assert fingerprint("a") == "e4e97ca0-7ff4-8bfd-2f4a-4fef6d3b0f0f"
    assert fingerprint("index", "tenant", "", "é") == "90b82e6a-46df-d4c0-74ee-6eb19df32fd3"


def test_a_prefix_changes_nothing_and_is_used_many_times() -> None:
    of = prefixed_fingerprint("index", "tenant")
    assert [of("a"), of("b"), of("a")] == [fingerprint("index", "tenant", text) for text in "aba"]


def test_texts_are_not_joined() -> None:
    assert len({fingerprint("ab", "c"), fingerprint("a", "bc"), fingerprint("abc"), fingerprint("abc", "")}) == 4
