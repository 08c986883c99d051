"""Which files of a folder are read, and what is said about the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.indexing.folder import walk
from orchestrator.indexing.folder.walk import FoundFiles, NoFiles, expanded, find


def write(folder: Path, *names: str, content: str = "text") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def found_in(*paths: Path) -> FoundFiles:
    return find(expanded(list(map(str, paths))))


def left_out(found: FoundFiles) -> dict[str, int]:
    return {reason: count for reason, count in found.left_out.items() if count}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs"


def test_files_are_read_by_the_end_of_their_name(folder: Path) -> None:
    write(folder, "a.md", "b/c.HTML", "b/d.rst", "LICENSE", "e.py", "f.pdf", "g.png", "h.lock")
    found = found_in(folder)
    assert [(file.id, file.format) for file in found.files] == [
        ("docs/LICENSE", "text"),
        ("docs/a.md", "markdown"),
        ("docs/b/c.HTML", "html"),
        ("docs/b/d.rst", "rst"),
        ("docs/e.py", "code"),
        ("docs/f.pdf", "pdf"),
    ]
    assert left_out(found) == {".png files": 1, ".lock files": 1}
    assert found.others == {"docs/g.png", "docs/h.lock"}


def test_hidden_files_and_folders_are_left_out(folder: Path) -> None:
    write(folder, ".git/config", ".hidden.md", "a.md")
    found = found_in(folder)
    assert [file.id for file in found.files] == ["docs/a.md"]
    assert left_out(found) == {"hidden folders": 1, "hidden files": 1}


def test_symbolic_links_lead_only_to_files_of_the_folder(folder: Path, tmp_path: Path) -> None:
    write(tmp_path, "outside.md", "elsewhere/x.md")
    write(folder, "a.md")
    (folder / "inside.md").symlink_to(folder / "a.md")
    (folder / "out.md").symlink_to(tmp_path / "outside.md")
    (folder / "up").symlink_to(tmp_path / "elsewhere")
    (folder / "gone.md").symlink_to(folder / "nothing.md")
    (folder / "loop").symlink_to(folder)
    found = found_in(folder)
    assert [file.id for file in found.files] == ["docs/a.md", "docs/inside.md"]
    assert left_out(found) == {
        "symbolic links to folders": 2,
        "symbolic links out of the folder": 1,
        "broken links and special files": 1,
    }


def test_special_and_large_files_are_not_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(folder / "pipe.md")
    write(folder, "big.md", content="x" * 11)
    monkeypatch.setattr(walk, "MAX_FILE_BYTES", 10)
    assert left_out(found_in(folder)) == {"broken links and special files": 1, "files of more than 0 MiB": 1}


def test_the_data_folder_is_not_searched(folder: Path) -> None:
    write(folder, "a.md", "data/index/names")
    assert [file.id for file in find(expanded([str(folder)]), folder / "data").files] == ["docs/a.md"]


def test_a_file_that_is_named_is_read_whatever_its_name_is(folder: Path) -> None:
    write(folder, ".notes.md", "a.weird")
    assert [file.id for file in found_in(folder / ".notes.md", folder / "a.weird").files] == [
        "docs/.notes.md",
        "docs/a.weird",
    ]


def test_a_file_and_its_folder_have_the_same_ids(folder: Path) -> None:
    write(folder, "a.md")
    assert [file.id for file in found_in(folder, folder / "a.md").files] == ["docs/a.md"]


def test_two_folders_of_one_name_are_refused(folder: Path, tmp_path: Path) -> None:
    write(folder, "a.md")
    write(tmp_path, "other/docs/a.md")
    with pytest.raises(NoFiles, match="have the same name: index them into two collections"):
        found_in(folder, tmp_path / "other" / "docs")


def test_files_of_a_pattern_have_the_ids_that_they_have_in_its_folder(folder: Path) -> None:
    write(folder, "a.md", "b/c.md", "d.txt", "x/README.md", "y/README.md")
    ids = {file.id for file in found_in(folder).files}
    assert {file.id for file in find(expanded([f"{folder}/**/*.md"])).files} == ids - {"docs/d.txt"}
    with pytest.raises(NoFiles, match=r"no file matches .*\.xyz"):
        expanded([f"{folder}/*.xyz"])


def test_a_part_of_a_folder_that_is_named_too_is_read_once(folder: Path) -> None:
    write(folder, "a.md", "b/c.md")
    found = found_in(folder, folder / "b", folder / "b" / "c.md")
    assert [file.id for file in found.files] == ["docs/a.md", "docs/b/c.md"]


def test_loops_of_links_are_left_out(folder: Path) -> None:
    write(folder, "a.md")
    (folder / "l1.md").symlink_to("l2.md")
    (folder / "l2.md").symlink_to("l1.md")
    assert left_out(found_in(folder)) == {"broken links and special files": 2}


def test_names_that_are_no_utf_8_are_left_out(folder: Path) -> None:
    write(folder, "a.md")
    (Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff.md"))).write_text("x")
    assert left_out(found_in(folder)) == {"files whose name is no UTF-8": 1}


def test_texts_with_usual_names_are_read_whatever_follows(folder: Path) -> None:
    write(folder, "README.Debian", "LICENSE-MIT", "COPYING.LESSER", "a.lesser")
    assert {file.format for file in found_in(folder).files} == {"text"}
    assert len(found_in(folder).files) == 3


def test_a_mistyped_path_is_named_with_the_nearest(folder: Path) -> None:
    write(folder, "guide.md")
    with pytest.raises(NoFiles, match=r"there is no file .*giude\.md; the nearest is .*guide\.md"):
        expanded([str(folder / "giude.md")])
