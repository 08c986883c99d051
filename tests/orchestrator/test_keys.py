"""The file of keys: made, read, changed while it is in use."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from adapters import Scope
from orchestrator import keys
from orchestrator.caller import Caller
from orchestrator.keys import Identity, Keys, KeysError, KeyUnknown
from tests.secrets import keep_out

LINE = f'{{"name":"n","id":"{"a" * 16}","sha256":"{"b" * 64}","tenant":"t"}}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def add(path: Path, name: str = "reader", admin: bool = False) -> str:
    key = keys.add(path, name, Scope("acme", "live"), "sensitive", admin)
    return keep_out(key)


def test_a_key_says_who_has_it_and_the_file_does_not_have_it(path: Path) -> None:
    key = add(path, admin=True)
    assert Keys(path).identify(f"Bearer {key}") == Identity("reader", Caller(Scope("acme", "live"), "sensitive"), True)
    secret = key.split("_", 2)[2]
    assert secret not in path.read_text()
    assert len(secret) >= 43
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER   "])
def test_the_scheme_has_no_case(path: Path, scheme: str) -> None:
    key = add(path)
    assert Keys(path).identify(scheme + key).name == "reader"


def test_nothing_else_is_a_key(path: Path) -> None:
    key = add(path)
    other = add(path, "other")
    known = Keys(path)
    swapped = key[:25] + other[25:]
    wrong = [
        "",
        key,
        f"Basic {key}",
        "Bearer",
        "Bearer ",
        f"Bearer {key}x",
        f"Bearer {key[:-1]}",
        f"Bearer  {swapped}",
    ]
    wrong += [f"Bearer {key[:-1]}{'A' if key[-1] != 'A' else 'B'}", f"Bearer {key.replace(key[8:24], 'f' * 16)}"]
    wrong += [f"Bearer {key}\n", f"Bearer {key},Bearer {key}"]
    for each in wrong:
        with pytest.raises(KeyUnknown):
            known.identify(each)


def test_keys_are_given_out_and_taken_back_while_the_file_is_used(path: Path) -> None:
    first = add(path)
    known = Keys(path)
    second = add(path, "second")
    known.refresh()
    assert [known.identify(f"Bearer {each}").name for each in (first, second)] == ["reader", "second"]
    keys.remove(path, "reader")
    known.refresh()
    assert known.identify(f"Bearer {second}").name == "second"
    with pytest.raises(KeyUnknown):
        known.identify(f"Bearer {first}")


def test_half_a_file_changes_nothing_and_is_told_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = add(path)
    known = Keys(path)
    whole = path.read_bytes()
    path.with_name("new").write_bytes(whole[: len(whole) // 2])
    path.with_name("new").rename(path)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            known.refresh()
    assert known.identify(f"Bearer {key}").name == "reader"
    assert len([record for record in caplog.records if "go on to hold" in record.message]) == 1
    path.unlink()
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            known.refresh()
    assert len([record for record in caplog.records if "cannot be read" in record.message]) == 1
    assert known.identify(f"Bearer {key}").name == "reader"
    path.write_bytes(b"")
    known.refresh()
    with pytest.raises(KeyUnknown):
        known.identify(f"Bearer {key}")


def test_a_file_that_cannot_be_read_for_a_moment_is_read_when_it_can(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key = add(path)
    known = Keys(path)
    keys.remove(path, "reader")
    with monkeypatch.context() as broken, caplog.at_level(logging.ERROR):
        broken.setattr(Path, "read_bytes", Mock(side_effect=PermissionError(13, "Permission denied")))
        for _ in range(3):
            known.refresh()
    assert known.identify(f"Bearer {key}").name == "reader"
    assert caplog.text.count("Permission denied") == 1
    known.refresh()
    with pytest.raises(KeyUnknown):
        known.identify(f"Bearer {key}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_stays_its_owners_whoever_writes_it(path: Path) -> None:
    add(path)
    os.chown(path, 12_345, 12_346)
    keys.remove(path, "reader")
    assert (path.stat().st_uid, path.stat().st_gid) == (12_345, 12_346)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("nonsense", "line 1"),
        (f"\n{LINE}\n{LINE}", "line 3.*twice"),
        (LINE.replace("tenant", "tennant"), "tennant"),
        (LINE.replace("}", ',"clearance":"all"}'), "all"),
        (LINE.replace("a" * 16, "a"), "id"),
        ("\udcff", "line 1"),
    ],
)
def test_a_file_that_is_not_one_is_refused_with_the_line(path: Path, written: str, told: str) -> None:
    path.write_bytes(written.encode(errors="surrogateescape"))
    with pytest.raises(KeysError, match=told):
        Keys(path)


def test_names_are_used_once_and_only_known_ones_removed(path: Path) -> None:
    with pytest.raises(KeysError, match="cannot be read"):
        Keys(path)
    add(path)
    with pytest.raises(KeysError, match="has a key of the name 'reader' already"):
        add(path)
    with pytest.raises(KeysError, match="has no key of the name 'writer'"):
        keys.remove(path, "writer")
    with pytest.raises(KeysError, match="cannot be written"):
        keys.add(path / "below", "x", Scope("a", "b"), "normal", admin=False)
    with pytest.raises(KeysError, match="cannot be read"):
        Keys(path / "below")


@pytest.mark.parametrize(
    ("name", "scope", "clearance"),
    [
        ("", Scope("a", "b"), "normal"),
        ("n" * 513, Scope("a", "b"), "normal"),
        ("\udcff", Scope("a", "b"), "normal"),
        ("n", Scope("", "b"), "normal"),
        ("n", Scope("a", "b"), "all"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(path: Path, name: str, scope: Scope, clearance: str) -> None:
    add(path)
    before = path.read_bytes()
    with pytest.raises(KeysError, match="not what a key can be called"):
        keys.add(path, name, scope, clearance, admin=False)
    assert path.read_bytes() == before
