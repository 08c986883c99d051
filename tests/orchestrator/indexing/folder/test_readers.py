"""Files of every format."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.indexing.folder.decode import NoText, Unreadable
from orchestrator.indexing.folder.readers import FileText, read
from orchestrator.indexing.folder.walk import FoundFile, format_of
from orchestrator.indexing.markdown import outline


def read_file(folder: Path, name: str, content: str | bytes) -> FileText:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    kind = format_of(path)
    assert kind is not None
    return read(FoundFile(path, f"docs/{name}", kind, "root"))


def targets(found: FileText) -> list[str]:
    return [each.target for each in found.references]


def test_markdown_with_front_matter(tmp_path: Path) -> None:
    front = "title: Guide\ndate: 2024-03-01\ntags: [a, b]\nlang: en\naliases: Manual\nowner: x"
    text = f"---\n{front}\n---\n# First\n\n[b](b.md)"
    found = read_file(tmp_path, "a.md", text)
    assert (found.title, found.text) == ("Guide", "# First\n\n[b](b.md)")
    assert found.fields.created_at == datetime(2024, 3, 1, tzinfo=UTC)
    assert (found.fields.tags, found.fields.language, found.fields.aliases) == (("a", "b"), "en", ("Manual",))
    assert found.fields.others == {"owner": "x"}
    assert targets(found) == ["b.md"]
    assert found.has_date


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a.md", "intro\n\n## Second\n\ntext", "Second"),
        ("a-b.md", "no heading", "a-b"),
        ("README.md", "no heading", "docs"),
        ("a.py", "# no heading\nx = 1", "a.py"),
        ("notes.txt", "# no heading", "notes"),
        ("LICENSE", "text", "docs LICENSE"),
        ("README.md", '<div align="center">\n<h1>My <b>Project</b></h1>\n</div>\n\n## Install\n\nx', "My Project"),
        ("a.md", "# First\n\n<h1>Second</h1>", "First"),
    ],
)
def test_a_title_is_the_first_heading_or_the_name(tmp_path: Path, name: str, text: str, title: str) -> None:
    assert read_file(tmp_path, name, text).title == title


@pytest.mark.parametrize("front", ["a: [", "a: b: c", "? {x: 1}", f"a: {'[' * 5_000}"])
def test_front_matter_that_cannot_be_read_loses_no_text(tmp_path: Path, front: str) -> None:
    found = read_file(tmp_path, "a.md", f"---\n{front}\n---\nthe text")
    assert "the text" in found.text
    assert found.note.startswith("the front matter is not read")


@pytest.mark.parametrize(
    "text",
    [
        "before\n\n---\n\nafter",
        "---\n- a list\n---\nafter",
        "---\nwords\n---\nafter",
        "---\n\nSome intro: yes, important\n\n---\n\nrest",
        "----\na: b\n----\nrest",
        "---\na: b\nno end",
    ],
)
def test_what_is_no_front_matter_stays_in_the_text(tmp_path: Path, text: str) -> None:
    found = read_file(tmp_path, "a.md", text)
    assert (found.text, found.fields.others) == (text, {})


def test_front_matter_in_toml(tmp_path: Path) -> None:
    found = read_file(tmp_path, "a.md", '+++\ntitle = "Guide"\ndate = 2024-03-01\ntags = ["a"]\n+++\ntext')
    assert (found.title, found.fields.tags, found.text) == ("Guide", ("a",), "text")
    assert found.fields.created_at == datetime(2024, 3, 1, tzinfo=UTC)


def test_a_date_that_is_none_loses_nothing_else(tmp_path: Path) -> None:
    found = read_file(tmp_path, "a.md", "---\ndate: 2024-13-45\ntitle: X\nrelated: [[B]]\n---\ntext")
    assert (found.title, found.note, found.has_date, found.fields.related) == ("X", "", False, ("B",))


def test_a_template_in_the_front_matter_is_no_title(tmp_path: Path) -> None:
    found = read_file(tmp_path, "a.md", "---\ntitle: {{ page.title }}\nlayout: x\n---\ntext")
    assert (found.title, found.note != "") == ("a", True)


def test_a_page_has_no_front_matter(tmp_path: Path) -> None:
    page = "<html><body><hr><p>Warning: never open [the valve</p><hr><p>rest</p></body></html>"
    text = read_file(tmp_path, "a.html", page).text
    assert "Warning: never open [the valve" in text
    assert "rest" in text


@pytest.mark.parametrize(
    "tag",
    [
        '<meta property="article:published_time" content="2024-03-01T00:00:00Z">',
        '<meta name="DC.Date" content="2024-03-01">',
        '<meta name="date" content="2024-03-01">',
    ],
)
def test_the_head_of_a_page_has_date_author_and_description(tmp_path: Path, tag: str) -> None:
    more = '<meta name="author" content="Ada"><meta name="description" content="About">'
    found = read_file(tmp_path, "a.html", f"<html><head><title>T</title>{tag}{more}</head><body>x</body></html>")
    assert found.fields.created_at == datetime(2024, 3, 1, tzinfo=UTC)
    assert found.fields.others == {"author": "Ada", "description": "About"}


def test_html(tmp_path: Path) -> None:
    page = (
        '<!DOCTYPE html><html lang="de"><head><title>The page</title><meta name="keywords" content="a, b">'
        '<meta name="date" content="2024-03-01"><meta name="viewport" content="width=1"><style>p {}</style>'
        "<script>var x;</script></head><body><h1>Top</h1><p>See <a href='b.html#c'>b</a>.</p><h2>Part</h2>"
        "<pre># no heading</pre><table><tr><th>A</th></tr><tr><td>cell</td></tr></table></body></html>"
    )
    found = read_file(tmp_path, "a.html", page)
    assert (found.title, found.fields.tags, found.fields.language) == ("The page", ("a", "b"), "de")
    assert found.fields.created_at == datetime(2024, 3, 1, tzinfo=UTC)
    assert found.fields.others == {}
    assert targets(found) == ["b.html#c"]
    assert found.text.startswith("# Top")
    assert "cell" in found.text
    assert "var x" not in found.text


def test_restructured_text(tmp_path: Path) -> None:
    text = (
        "=====\nTitle\n=====\n\nSee :doc:`install` and :doc:`this <guide/x>`.\n\nPart\n----\n\ntext `b <b.rst>`_\n\n"
        "Deep\n~~~~\n\n.. toctree::\n   :maxdepth: 2\n\n   first\n   Second <second>\n"
    )
    found = read_file(tmp_path, "a.rst", text)
    assert found.title == "Title"
    assert "## Part" in found.text
    assert "### Deep" in found.text
    assert targets(found) == ["install", "guide/x", "b.rst", "first", "second"]


@pytest.mark.parametrize(
    "code",
    ["   # install it\n   pip install x", "   Foo\n   ===", "~~~\n\ntext\n", "```\ntext"],
)
def test_code_in_restructured_text_has_no_headings(tmp_path: Path, code: str) -> None:
    text = f"Title\n=====\n\nintro\n\n.. code-block:: bash\n\n{code}\n\nafter\n\nLast\n----\n\nend\n"
    found = outline(read_file(tmp_path, "a.rst", text).text)
    assert [section.headings for section in found.sections] == [("Title",), ("Title", "Last")]


def test_a_table_is_no_heading(tmp_path: Path) -> None:
    text = "Title\n=====\n\n====  ====\na     b\n====  ====\n1     2\n====  ====\n"
    assert read_file(tmp_path, "a.rst", text).text.count("#") == 1


def test_pdf(tmp_path: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="the extra evaluate is not installed")
    pytest.importorskip("pypdfium2", reason="the extra documents is not installed")
    figure = pyplot.figure()
    figure.text(0.1, 0.5, "The words on the page")
    figure.savefig(tmp_path / "made.pdf", metadata={"Title": "A paper", "Keywords": "x, y", "Author": "Ada"})
    pyplot.close(figure)
    found = read_file(tmp_path, "a.pdf", (tmp_path / "made.pdf").read_bytes())
    assert (found.title, found.fields.tags, found.fields.others) == ("A paper", ("x", "y"), {"author": "Ada"})
    assert "The words on the page" in found.text
    assert found.fields.created_at is not None


def test_a_pdf_of_images_has_no_text(tmp_path: Path) -> None:
    pypdfium2 = pytest.importorskip("pypdfium2", reason="the extra documents is not installed")
    with pypdfium2.PdfDocument.new() as document:
        document.new_page(100, 100)
        document.save(tmp_path / "made.pdf")
    with pytest.raises(NoText, match="PDF files without text"):
        read_file(tmp_path, "a.pdf", (tmp_path / "made.pdf").read_bytes())


@pytest.mark.parametrize("content", [b"%PDF-1.4 broken", b"", b"no PDF at all"])
def test_a_broken_pdf_says_so(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("pypdfium2", reason="the extra documents is not installed")
    with pytest.raises(Unreadable, match="the PDF cannot be read"):
        read_file(tmp_path, "a.pdf", content)


def test_without_a_date_of_its_own_a_file_has_that_of_its_last_change(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    os.utime(tmp_path / "a.md", (0, 1_709_251_200))
    found = read(FoundFile(tmp_path / "a.md", "docs/a.md", "markdown", "root"))
    assert (found.fields.created_at, found.has_date) == (datetime(2024, 3, 1, tzinfo=UTC), False)


def test_binary_content_with_the_name_of_a_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoText):
        read_file(tmp_path, "a.md", b"\x00\x01\x02")
