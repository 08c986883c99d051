"""Who may see the documents of a file, from its front matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.model.document import Metadatum
from adapters.model.protection import Protection
from orchestrator.indexing.folder.protection import protection_of
from orchestrator.indexing.folder.readers import FileText, read
from orchestrator.indexing.folder.walk import expanded, find


def text_of(folder: Path, text: str) -> FileText:
    (folder / "a.md").write_text(text)
    (file,) = find(expanded([str(folder)])).files
    return read(file)


@pytest.mark.parametrize(
    ("front_matter", "protection", "metadata"),
    [
        ("title: A", Protection(), {}),
        ("visibility: private\nowner: alice", Protection("normal", "private", "alice"), {}),
        ("Visibility: Team\nteam: ' legal '", Protection("normal", "team", None, "legal"), {}),
        ("visibility: tenant\nsensitivity: public", Protection("public"), {}),
        ("owner: alice\nteam: legal", Protection(), {"owner": "alice", "team": "legal"}),
        (
            "visible: yes\nactivity: high\npriority: 1",
            Protection(),
            {"visible": True, "activity": "high", "priority": 1},
        ),
    ],
)
def test_front_matter_says_who_sees_a_file(
    tmp_path: Path, front_matter: str, protection: Protection, metadata: dict[str, Metadatum]
) -> None:
    found = text_of(tmp_path, f"---\n{front_matter}\n---\ntext")
    assert protection_of(found.fields.others) == (protection, metadata)


@pytest.mark.parametrize(
    ("front_matter", "error"),
    [
        ("visibility:\nowner: alice", "visibility: empty, allowed are tenant, team, private"),
        ("visibility: ''", "visibility: empty, allowed are tenant, team, private"),
        ("sensitivity: ~", "sensitivity: empty, allowed are public, normal, sensitive, restricted"),
        ("visiblity: private", "visiblity: unknown, the nearest is visibility, which says who may see the file"),
        ("sensitvity: restricted", "sensitvity: unknown, the nearest is sensitivity"),
        ("visibility: private\nowner: alice\ntags: [a", "it says who may see the file"),
        ("tags: [a\n 'sensitivity': restricted", "it says who may see the file"),
    ],
)
def test_a_file_is_not_read_whose_front_matter_may_hide_it(tmp_path: Path, front_matter: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        text_of(tmp_path, f"---\n{front_matter}\n---\ntext")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"visibility": "privat"}, "visibility: 'privat', allowed are tenant, team, private; the nearest is private"),
        ({"visibility": "private", "owner": 7}, "owner: '7', allowed is a text"),
        ({"visibility": "team", "team": " "}, "team: ' ', allowed is a text"),
    ],
)
def test_a_value_that_is_not_allowed_is_an_error(fields: dict[str, Metadatum], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        protection_of(fields)


def test_other_front_matter_that_cannot_be_read_is_text(tmp_path: Path) -> None:
    found = text_of(tmp_path, "---\ntags: [a\n---\ntext")
    assert found.note.startswith("the front matter is not read")
