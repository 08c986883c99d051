"""The file of API keys: written, read, and changed while it is in use."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from adapters import Scope
from orchestrator.auth.key_admin import add_key, remove_key
from orchestrator.auth.keyring import KeyFileError, Keyring, UnknownKey
from orchestrator.auth.principal import Principal
from tests.secrets import register_secret

LINE = f'{{"name":"n","id":"{"a" * 16}","sha256":"{"b" * 64}","tenant":"t"}}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def add(path: Path, name: str = "reader", **roles: bool) -> str:
    return register_secret(add_key(path, name, Scope("acme", "live"), "sensitive", **roles))


def test_a_key_authenticates_its_principal_and_is_not_stored(path: Path) -> None:
    key = add(path, admin=True)
    expected = Principal("reader", Scope("acme", "live"), "sensitive", "admin")
    assert Keyring(path).authenticate(f"Bearer {key}") == expected
    secret = key.split("_", 2)[2]
    assert secret not in path.read_text()
    assert len(secret) >= 43
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ({}, "reader"),
        ({"admin": True}, "admin"),
        ({"operator": True}, "operator"),
        ({"admin": True, "operator": True}, "operator"),
    ],
)
def test_the_highest_role_of_a_key_counts(path: Path, roles: dict[str, bool], expected: str) -> None:
    key = add(path, **roles)
    assert Keyring(path).authenticate(f"Bearer {key}").role == expected


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER   "])
def test_the_case_of_the_scheme_does_not_matter(path: Path, scheme: str) -> None:
    key = add(path)
    assert Keyring(path).authenticate(scheme + key).name == "reader"


def test_nothing_else_authenticates(path: Path) -> None:
    key = add(path)
    other = add(path, "other")
    keyring = Keyring(path)
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
        with pytest.raises(UnknownKey):
            keyring.authenticate(each)


def test_keys_are_added_and_removed_while_the_file_is_in_use(path: Path) -> None:
    first = add(path)
    keyring = Keyring(path)
    second = add(path, "second")
    keyring.refresh()
    assert [keyring.authenticate(f"Bearer {each}").name for each in (first, second)] == ["reader", "second"]
    remove_key(path, "reader")
    keyring.refresh()
    assert keyring.authenticate(f"Bearer {second}").name == "second"
    with pytest.raises(UnknownKey):
        keyring.authenticate(f"Bearer {first}")


def test_a_changed_file_is_logged_and_an_empty_one_is_a_warning(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    add(path)
    keyring = Keyring(path)
    add(path, "second")
    with caplog.at_level(logging.INFO):
        keyring.refresh()
        path.write_bytes(b"")
        keyring.refresh()
    found = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert found == [
        ("INFO", "the file of API keys has changed: 2 keys are valid now"),
        ("WARNING", "the file of API keys has changed: 0 keys are valid now"),
    ]


def test_an_incomplete_file_changes_nothing_and_is_logged_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = add(path)
    keyring = Keyring(path)
    complete = path.read_bytes()
    path.with_name("new").write_bytes(complete[: len(complete) // 2])
    path.with_name("new").rename(path)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            keyring.refresh()
    assert keyring.authenticate(f"Bearer {key}").name == "reader"
    assert len([record for record in caplog.records if "stay valid" in record.message]) == 1
    path.unlink()
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            keyring.refresh()
    assert len([record for record in caplog.records if "cannot be read" in record.message]) == 1
    assert keyring.authenticate(f"Bearer {key}").name == "reader"
    path.write_bytes(b"")
    keyring.refresh()
    with pytest.raises(UnknownKey):
        keyring.authenticate(f"Bearer {key}")


def test_a_file_that_cannot_be_read_for_a_while_is_read_afterwards(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key = add(path)
    keyring = Keyring(path)
    remove_key(path, "reader")
    with monkeypatch.context() as broken, caplog.at_level(logging.ERROR):
        broken.setattr(Path, "read_bytes", Mock(side_effect=PermissionError(13, "Permission denied")))
        for _ in range(3):
            keyring.refresh()
    assert keyring.authenticate(f"Bearer {key}").name == "reader"
    assert caplog.text.count("Permission denied") == 1
    keyring.refresh()
    with pytest.raises(UnknownKey):
        keyring.authenticate(f"Bearer {key}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_of_the_file_stays_the_same(path: Path) -> None:
    add(path)
    os.chown(path, 12_345, 12_346)
    remove_key(path, "reader")
    assert (path.stat().st_uid, path.stat().st_gid) == (12_345, 12_346)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nonsense", "line 1"),
        (f"\n{LINE}\n{LINE}", "line 3.*twice"),
        (LINE.replace("tenant", "tennant"), "tennant"),
        (LINE.replace("}", ',"clearance":"all"}'), "all"),
        (LINE.replace("a" * 16, "a"), "id"),
        ("\udcff", "line 1"),
    ],
)
def test_an_invalid_file_is_refused_with_the_number_of_the_line(path: Path, content: str, message: str) -> None:
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(KeyFileError, match=message):
        Keyring(path)


def test_names_are_unique_and_only_known_ones_can_be_removed(path: Path) -> None:
    with pytest.raises(KeyFileError, match="cannot be read"):
        Keyring(path)
    add(path)
    with pytest.raises(KeyFileError, match="already has a key named 'reader'"):
        add(path)
    with pytest.raises(KeyFileError, match="has no key named 'writer'"):
        remove_key(path, "writer")
    with pytest.raises(KeyFileError, match="cannot be written"):
        add_key(path / "below", "x", Scope("a", "b"), "normal", admin=False)
    with pytest.raises(KeyFileError, match="cannot be read"):
        Keyring(path / "below")


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
def test_a_value_that_could_not_be_read_again_is_not_written(
    path: Path, name: str, scope: Scope, clearance: str
) -> None:
    add(path)
    before = path.read_bytes()
    with pytest.raises(KeyFileError, match="a value of the key is not allowed"):
        add_key(path, name, scope, clearance, admin=False)
    assert path.read_bytes() == before


def test_a_file_that_every_user_may_write_is_refused(path: Path) -> None:
    key = add(path)
    keyring = Keyring(path)
    path.chmod(0o666)
    with pytest.raises(KeyFileError, match="can be written by every user of this machine: chmod o-w it"):
        Keyring(path)
    keyring.refresh()
    assert keyring.authenticate(f"Bearer {key}").name == "reader"
