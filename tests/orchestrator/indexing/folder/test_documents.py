"""The documents of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from adapters import Document, Link
from adapters.graph.name_rules import NameRules
from orchestrator.indexing.chunks import Chunker
from orchestrator.indexing.folder import documents as documents_module
from orchestrator.indexing.folder.documents import FolderDocuments, names_of
from orchestrator.indexing.folder.readers import read
from orchestrator.indexing.folder.walk import expanded, find
from tests.orchestrator.service.document_helpers import Words


def documents_of(folder: Path, files: Mapping[str, str], words: int = 12) -> dict[str, Document]:
    """All documents of a folder, by id."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    maker, texts = maker_of(folder, words)
    made = [each for file, text in texts.items() for each in maker.documents(maker.draft(file, text))]
    assert len({each.id for each in made}) == len(made)
    return {each.id: each for each in made}


def maker_of(folder: Path, words: int = 12):  # type: ignore[no-untyped-def]
    found = find(expanded([str(folder)]))
    texts = {file: read(file) for file in found.files}
    names = {file.id: names_of(text) for file, text in texts.items()}
    return FolderDocuments(found, names, Chunker(Words(words), words), NameRules(lambda _: ()), "documents"), texts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "docs"


def test_a_short_file_is_one_document(folder: Path) -> None:
    made = documents_of(
        folder, {"a.md": "---\naliases: [First]\ntags: x\n---\n# A page\n\nSee [b](b.md).", "b.md": "b"}
    )
    document = made["docs/a.md"]
    assert (document.title, document.url, document.tags) == ("A page", "docs/a.md", ("x",))
    assert document.links == (Link("docs/b.md", "link"),)
    assert document.entities == ("First",)
    assert {key: document.metadata[key] for key in ("path", "folder")} == {"path": "docs/a.md", "folder": "docs"}


def test_a_link_belongs_to_the_chunk_that_has_it(folder: Path) -> None:
    filler = "word " * 11
    made = documents_of(
        folder, {"a.md": f"# One\n\n{filler}\n\n# Two\n\n{filler} [[b]]\n", "b.md": "b", "README.md": "index"}
    )
    part_of = Link("docs/a.md", "part_of", target_collection="documents")
    assert made["docs/a.md"].links == (Link("docs/README.md", "part_of"),)
    assert made["docs/a.md#one:0"].links == (part_of,)
    assert made["docs/a.md#two:0"].links == (part_of, Link("docs/b.md", "link"))
    assert made["docs/a.md#two:0"].url == "docs/a.md#two"
    assert "fingerprint" not in made["docs/a.md#two:0"].metadata


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("a b.md", "docs/a%20b.md"),
        ("a#b.md", "docs/a%23b.md"),
        ("100%.md", "docs/100%25.md"),
        ("Größe.md", "docs/Größe.md"),
    ],
)
def test_the_url_of_a_file_leads_to_it(folder: Path, name: str, url: str) -> None:
    made = documents_of(folder, {name: f"# One\n\n{'word ' * 20}\n\n# Two\n\nend"})
    assert made[f"docs/{name}"].url == url
    assert made[f"docs/{name}#two:0"].url == f"{url}#two"


def test_what_is_related_in_the_front_matter_is_linked_from_the_file(folder: Path) -> None:
    made = documents_of(folder, {"a.md": "---\nrelated: [b.md, nothing]\n---\ntext", "b.md": "b"})
    assert made["docs/a.md"].links == (Link("docs/b.md", "related"),)


def test_names_of_other_files_are_entities_where_they_are_mentioned(folder: Path) -> None:
    made = documents_of(folder, {"a.md": "the write log is durable", "b.md": "---\ntitle: Write log\n---\ntext"})
    assert made["docs/a.md"].entities == ("Write log",)


def fingerprint(folder: Path, name: str, words: int = 12) -> str:
    maker, texts = maker_of(folder, words)
    return next(maker.draft(file, text).fingerprint for file, text in texts.items() if file.id == f"docs/{name}")


def test_a_fingerprint_changes_with_everything_that_is_made_of_a_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents_of(folder, {"a.md": "the write log and [b](b.md)", "b.md": "b"})
    seen = [fingerprint(folder, "a.md")]
    assert fingerprint(folder, "a.md") == seen[0]
    (folder / "c.md").write_text("no name that a mentions")
    assert fingerprint(folder, "a.md") == seen[0]
    (folder / "a.md").touch()
    assert fingerprint(folder, "a.md") == seen[0]
    (folder / "c.md").write_text("# Write log")
    seen.append(fingerprint(folder, "a.md"))
    (folder / "b.md").unlink()
    seen.append(fingerprint(folder, "a.md"))
    (folder / "a.md").write_text("the write log and more")
    seen.append(fingerprint(folder, "a.md"))
    seen.append(fingerprint(folder, "a.md", words=5))
    monkeypatch.setattr(documents_module, "RECIPE", "another")
    seen.append(fingerprint(folder, "a.md"))
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize(
    ("text", "error"), [("---\ntitle: x\n---\n \n", "files without text"), ("x" * 600_000, "600000 bytes")]
)
def test_a_file_without_a_text_that_can_be_indexed_is_refused(folder: Path, text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        documents_of(folder, {"a.md": text})


def test_dangling_references_are_listed(folder: Path) -> None:
    documents_of(folder, {"a.md": "[x](x.md) [[y]] [web](https://example.org) [up](../../z.md)"})
    maker, texts = maker_of(folder)
    ((file, text),) = texts.items()
    assert maker.draft(file, text).dangling == ["x.md", "y"]
    assert maker.draft(file, replace(text, references=())).dangling == []
