"""Files with a checksum."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adapters import Damaged
from adapters.storage import checked_file


class Value(msgspec.Struct):
    """What the tests store."""

    number: int
    text: str = "x"


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    binary, json = tmp_path / "binary", tmp_path / "json"
    checked_file.write(binary, b"content")
    checked_file.write_json(json, Value(7))
    assert checked_file.read(binary) == b"content"
    assert checked_file.read_json(json, Value) == Value(7)
    assert checked_file.mapped(binary).tobytes() == b"content"
    assert json.read_text().splitlines()[1] == '{"number":7,"text":"x"}'
    for path in (binary, json):
        content = path.read_bytes()
        for bit in range(8 * len(content)):
            changed = bytearray(content)
            changed[bit // 8] ^= 1 << bit % 8
            path.write_bytes(changed)
            for read in (checked_file.read, checked_file.mapped):
                with pytest.raises(Damaged) as raised:
                    read(path)
                assert str(path) in raised.value.detail


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"trivium 0\n{}", b"trivium " + b"0" * 32 + b"\n{}"])
def test_what_was_not_written_here_is_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    for read in (checked_file.read, checked_file.mapped):
        with pytest.raises(Damaged):
            read(tmp_path / "file")


def test_a_file_does_not_pass_under_another_name_or_as_another_type(tmp_path: Path) -> None:
    checked_file.write_json(tmp_path / "one", Value(7))
    with pytest.raises(msgspec.ValidationError):
        checked_file.read_json(tmp_path / "one", list)
    (tmp_path / "one").rename(tmp_path / "two")
    with pytest.raises(Damaged):
        checked_file.read_json(tmp_path / "two", Value)
    with pytest.raises(FileNotFoundError):
        checked_file.read_json(tmp_path / "one", Value)


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    checked_file.write(tmp_path / "a", b"")
    checked_file.write_json(tmp_path / "b", 1)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
