"""Folders of files: after each run the index has what the files have."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters import Document, Unavailable
from adapters.graph.name_rules import NameRules
from adapters.graph.names import mentioned
from adapters.model.filter import Eq, Filter
from orchestrator.auth.principal import Forbidden, Principal
from orchestrator.indexing.folder.walk import expanded, find
from orchestrator.planning.errors import BadRequest
from orchestrator.service.documents import DocumentService
from orchestrator.service.folders import FolderReport, FolderService, Missing
from tests.conftest import SCOPE
from tests.orchestrator.service.document_helpers import WRITER, Words, admin, put, service_in

pytestmark = pytest.mark.anyio

COLLECTION = "documents"
NAMES = st.sampled_from(["a.md", "b.md", "sub/a.md", "sub/README.md", "c.txt"])
PARTS = st.sampled_from(
    ["# Write log", "## Install", "the write log is durable", "See [b](b.md)", "[[sub/a]]", "some more words here"]
)
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, st.lists(PARTS, min_size=1, max_size=6).map("\n\n".join)),
        st.tuples(st.just("remove"), NAMES, st.just("")),
        st.tuples(st.just("rename"), NAMES, st.sampled_from(["d.md", "sub/e.md"])),
        st.tuples(st.just("index"), st.just(""), st.just("")),
    ),
    max_size=12,
)


@pytest.fixture
def folders(service: DocumentService) -> FolderService:
    return FolderService(service, NameRules(mentioned), Words)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs"


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)


async def index(
    folders: FolderService, *paths: Path, by: Principal = WRITER, missing: Missing = "remove", tokens: int = 3
) -> FolderReport:
    files = await folders.read(find(expanded(list(map(str, paths)))))
    return await folders.index(files, by, COLLECTION, tokens, missing)


async def stored(folders: FolderService, condition: Filter | None = None) -> dict[str, Document]:
    return {document.id: document async for document in folders.documents.all(WRITER, condition)}


def counts(report: FolderReport) -> tuple[int, int, int, int]:
    return report.added, report.changed, report.unchanged, report.removed


async def test_a_folder_is_indexed_and_followed(folders: FolderService, folder: Path) -> None:
    write(folder, "a.md", "# One\n\none two three four")
    write(folder, "sub/b.md", "short")
    write(folder, "c.png", "no text")
    report = await index(folders, folder)
    assert (counts(report), report.chunks, dict(report.left_out)[".png files"]) == ((2, 0, 0, 0), 2, 1)
    assert set(await stored(folders)) == {"docs/a.md", "docs/a.md#one:0", "docs/a.md#one:1", "docs/sub/b.md"}
    generation = folders.documents.generation()
    assert counts(await index(folders, folder)) == (0, 0, 2, 0)
    assert folders.documents.generation() == generation
    write(folder, "a.md", "now short")
    write(folder, "new.md", "new")
    (folder / "sub" / "b.md").unlink()
    assert counts(await index(folders, folder)) == (1, 1, 0, 1)
    assert set(await stored(folders)) == {"docs/a.md", "docs/new.md"}


async def test_documents_of_missing_files_can_be_kept(folders: FolderService, folder: Path) -> None:
    write(folder, "a.md", "a")
    write(folder, "b.md", "b")
    await index(folders, folder)
    (folder / "a.md").unlink()
    assert counts(await index(folders, folder, missing="keep")) == (0, 0, 1, 0)
    assert set(await stored(folders)) == {"docs/a.md", "docs/b.md"}


async def test_a_file_that_is_named_removes_no_other(folders: FolderService, folder: Path) -> None:
    write(folder, "a.md", "a")
    write(folder, "b.md", "b")
    await index(folders, folder)
    (folder / "a.md").unlink()
    assert counts(await index(folders, folder / "b.md")) == (0, 0, 1, 0)
    assert set(await stored(folders)) == {"docs/a.md", "docs/b.md"}


async def test_another_folder_of_the_same_name_does_not_empty_the_first(
    folders: FolderService, folder: Path, tmp_path: Path
) -> None:
    write(folder, "a.md", "a")
    await index(folders, folder)
    other = tmp_path / "other" / "docs"
    other.mkdir(parents=True)
    write(other, "b.md", "b")
    with pytest.raises(BadRequest, match=r"1 files such as docs/a\.md are indexed of another folder of the name docs"):
        await index(folders, other)
    assert set(await stored(folders)) == {"docs/a.md"}
    write(other, "a.md", "the same name")
    write(folder, "c.md", "c")
    await index(folders, folder)
    with pytest.raises(BadRequest, match=r"such as docs/c\.md are indexed of another folder"):
        await index(folders, other)
    assert counts(await index(folders, other, missing="keep")) == (1, 1, 0, 0)
    assert counts(await index(folders, other, missing="force")) == (0, 0, 2, 1)


async def test_a_folder_that_was_moved_is_followed(folders: FolderService, folder: Path, tmp_path: Path) -> None:
    write(folder, "a.md", "a")
    write(folder, "b.md", "b")
    await index(folders, folder)
    moved = tmp_path / "new" / "docs"
    shutil.move(folder, moved)
    assert counts(await index(folders, moved)) == (0, 0, 2, 0)
    (moved / "b.md").unlink()
    with pytest.raises(BadRequest, match="was moved, remove their documents with --remove-missing"):
        await index(folders, moved)
    assert counts(await index(folders, moved, missing="force")) == (0, 0, 1, 1)


async def test_a_folder_whose_files_are_all_gone_is_not_emptied(folders: FolderService, folder: Path) -> None:
    write(folder, "a.md", "a")
    write(folder, "b.md", "b")
    await index(folders, folder)
    (folder / "a.md").rename(folder / "c.md")
    (folder / "b.md").unlink()
    with pytest.raises(BadRequest, match="none of the 2 files that are indexed of docs is there"):
        await index(folders, folder)
    assert counts(await index(folders, folder, missing="force")) == (1, 0, 0, 2)


async def test_the_only_file_may_be_renamed(folders: FolderService, folder: Path) -> None:
    write(folder, "a.md", "a")
    await index(folders, folder)
    (folder / "a.md").rename(folder / "b.md")
    assert counts(await index(folders, folder)) == (1, 0, 0, 1)


async def test_what_cannot_be_read_for_now_stays(
    folders: FolderService, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.md", "sub/b.md", "c.md"):
        write(folder, name, "text")
    await index(folders, folder)
    real = os.scandir

    def scandir(path: str) -> Any:
        if Path(path).name == "sub":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    report = await index(folders, folder)
    assert (counts(report), report.errors) == ((0, 0, 2, 0), {"docs/sub": "Permission denied"})
    assert set(await stored(folders)) == {"docs/a.md", "docs/sub/b.md", "docs/c.md"}


async def test_documents_that_are_no_files_stay(folders: FolderService, folder: Path) -> None:
    await put(
        folders.documents, Document(id="docs/x", text="x"), Document(id="y", text="y", metadata={"folder": "docs"})
    )
    write(folder, "a.md", "a")
    await index(folders, folder)
    assert set(await stored(folders)) == {"docs/x", "y", "docs/a.md"}


async def test_broken_files_are_reported_and_stop_nothing(folders: FolderService, folder: Path) -> None:
    write(folder, "a.md", "a")
    (folder / "bad.pdf").write_bytes(b"no PDF")
    (folder / "zeros.md").write_bytes(b"\x00\x00")
    write(folder, "empty.md", " ")
    write(folder, "head.md", "---\ntitle: x\n---\n")
    write(folder, "z.md", "---\na: [\n---\nz")
    report = await index(folders, folder)
    assert report.files == 2
    assert set(report.errors) == {"docs/bad.pdf"}
    assert list(report.notes) == ["docs/z.md"]
    assert [report.left_out[f"{kind} files"] for kind in ("binary", "empty")] == [1, 1]
    assert report.left_out["files without text"] == 1


async def test_a_file_that_cannot_be_read_any_more_keeps_its_documents(folders: FolderService, folder: Path) -> None:
    write(folder, "a.md", "one two three four")
    write(folder, "b.md", "b")
    await index(folders, folder)
    write(folder, "a.md", "x" * 600_000)
    (folder / "b.md").write_bytes(b"\x00")
    report = await index(folders, folder)
    assert (list(report.errors), report.removed) == (["docs/a.md"], 1)
    assert set(await stored(folders)) == {"docs/a.md", "docs/a.md#:0", "docs/a.md#:1"}


@pytest.mark.parametrize("text", ["---\ntitle: x\n---\n", "", " \n", "\ufeff"])
async def test_a_file_that_has_no_text_any_more_is_removed(folders: FolderService, folder: Path, text: str) -> None:
    write(folder, "a.md", "one two three four")
    await index(folders, folder)
    write(folder, "a.md", text)
    assert (await index(folders, folder)).removed == 1
    assert await stored(folders) == {}


@pytest.mark.parametrize(("given", "level"), [("Restricted", "restricted"), (" public ", "public"), (None, "normal")])
async def test_the_sensitivity_of_a_file_is_kept_whatever_its_case(
    folders: FolderService, folder: Path, given: str | None, level: str
) -> None:
    write(folder, "a.md", f"---\nsensitivity: '{given}'\n---\nsecret" if given else "text")
    await index(folders, folder)
    assert (await stored(folders))["docs/a.md"].sensitivity == level


async def test_a_file_of_an_unknown_sensitivity_is_refused(folders: FolderService, folder: Path) -> None:
    write(folder, "a.md", "---\nsensitivity: confidential\n---\nsecret")
    report = await index(folders, folder)
    assert report.errors["docs/a.md"].startswith("sensitivity: 'confidential', allowed are public, normal, sensitive")
    assert await stored(folders) == {}


async def test_what_the_graph_got_is_reported(folders: FolderService, folder: Path) -> None:
    write(folder, "a.md", "See [b](b.md) and [gone](gone.md)")
    write(folder, "b.md", "# Write log\n\ntext")
    write(folder, "c.md", "alone")
    report = await index(folders, folder)
    assert (report.links, report.dangling, report.examples) == (1, 1, ["docs/a.md: gone.md"])
    assert (report.linked, report.names) == ({"docs/a.md", "docs/b.md"}, 1)


async def test_other_chunk_sizes_replace_all_chunks(folders: FolderService, folder: Path) -> None:
    write(folder, "a.md", "one two three four five six")
    await index(folders, folder)
    assert counts(await index(folders, folder, tokens=2)) == (0, 1, 0, 0)
    assert len(await stored(folders, Eq("parent_id", "docs/a.md"))) == 3
    assert counts(await index(folders, folder, tokens=10)) == (0, 1, 0, 0)
    assert len(await stored(folders)) == 1


async def test_a_new_title_is_found_in_files_that_did_not_change(folders: FolderService, folder: Path) -> None:
    write(folder, "a.md", "a write log here")
    await index(folders, folder)
    write(folder, "b.md", "---\ntitle: Write log\n---\nx")
    assert counts(await index(folders, folder)) == (1, 1, 0, 0)
    assert "Write log" in ((await stored(folders))["docs/a.md"].entities or ())


async def test_only_a_writer_indexes_and_not_above_its_clearance(folders: FolderService, folder: Path) -> None:
    write(folder, "a.md", "---\nsensitivity: restricted\n---\nsecret")
    write(folder, "b.md", "b")
    with pytest.raises(Forbidden):
        await index(folders, folder, by=Principal("reader", SCOPE, "restricted", "reader"))
    report = await index(folders, folder, by=admin("normal"))
    assert "above your clearance" in report.errors["docs/a.md"]
    assert set(await stored(folders)) == {"docs/b.md"}


async def test_without_the_index_of_documents_nothing_is_written(
    folders: FolderService, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise Unavailable("away")

    write(folder, "a.md", "a")
    monkeypatch.setattr(folders.documents.documents, "page", fail)
    with pytest.raises(Unavailable):
        await index(folders, folder)


@pytest.mark.slow
@given(EDITS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_the_index_is_that_of_the_files_whatever_was_before(
    tmp_path_factory: pytest.TempPathFactory, edits: list[Any]
) -> None:
    root = tmp_path_factory.mktemp("edits")
    folder = root / "docs"
    folder.mkdir()
    write(folder, "keep.md", "stays")
    followed = FolderService(service_in(root / "one"), NameRules(mentioned), Words)
    for action, name, argument in [*edits, ("index", "", "")]:
        path = folder / name
        if action == "write":
            write(folder, name, argument)
        elif action == "remove":
            path.unlink(missing_ok=True)
        elif action == "rename" and path.is_file():
            (folder / argument).parent.mkdir(exist_ok=True)
            path.rename(folder / argument)
        elif action == "index":
            await index(followed, folder)
    fresh = FolderService(service_in(root / "two"), NameRules(mentioned), Words)
    await index(fresh, folder)
    kept = {id_: dateless(each) for id_, each in (await stored(followed)).items()}
    assert kept == {id_: dateless(each) for id_, each in (await stored(fresh)).items()}
    shutil.rmtree(root)


def dateless(document: Document) -> tuple[Any, ...]:
    """A document without the date of its last change, which a touched file does not have."""
    return tuple(getattr(document, name) for name in document.__struct_fields__ if name != "created_at")
