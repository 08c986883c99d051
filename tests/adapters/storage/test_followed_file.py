from __future__ import annotations

from pathlib import Path

import pytest

from adapters.storage.files import replace
from adapters.storage.followed_file import FollowedFile


def number(path: Path) -> int:
    return int(path.read_text())


def write(path: Path, text: str) -> None:
    """Replace a file by renaming, so that the inode differs even within one tick of the clock."""
    replace(path, text.encode())


def test_the_value_is_missing_until_the_first_refresh(tmp_path: Path) -> None:
    write(tmp_path / "n", "7")
    followed = FollowedFile(tmp_path / "n", number, missing=-1)
    assert followed.value == -1
    assert followed.refresh() is True
    assert followed.value == 7


def test_an_unchanged_file_is_not_decoded_again(tmp_path: Path) -> None:
    decoded: list[Path] = []
    write(tmp_path / "n", "7")
    followed: FollowedFile[None] = FollowedFile(tmp_path / "n", decoded.append, missing=None)
    assert [followed.refresh() for _ in range(3)] == [True, False, False]
    assert decoded == [tmp_path / "n"]


def test_a_replaced_file_is_decoded_again(tmp_path: Path) -> None:
    followed = FollowedFile(tmp_path / "n", number, missing=-1)
    for text in ("7", "8", "9"):
        write(tmp_path / "n", text)
        assert followed.refresh() is True
        assert followed.value == int(text)


def test_a_deleted_file_is_missing_and_may_return(tmp_path: Path) -> None:
    followed = FollowedFile(tmp_path / "n", number, missing=-1)
    assert followed.refresh() is False
    write(tmp_path / "n", "7")
    followed.refresh()
    (tmp_path / "n").unlink()
    assert (followed.refresh(), followed.value) == (True, -1)
    assert followed.refresh() is False
    write(tmp_path / "n", "8")
    assert (followed.refresh(), followed.value) == (True, 8)


def test_a_decode_error_propagates_and_leaves_the_value(tmp_path: Path) -> None:
    write(tmp_path / "n", "7")
    followed = FollowedFile(tmp_path / "n", number, missing=-1)
    followed.refresh()
    write(tmp_path / "n", "no number")
    for _ in range(2):  # a file that could not be decoded is tried again
        with pytest.raises(ValueError, match="no number"):
            followed.refresh()
        assert followed.value == 7
    write(tmp_path / "n", "8")
    assert (followed.refresh(), followed.value) == (True, 8)
