"""Texts in whatever encoding."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.indexing.folder.decode import NoText, decoded

GERMAN = "Größe, Länge und Höhe sind in der Tabelle angegeben. Die Prüfung überträgt alle Maße.\n" * 3
CHINESE = "搜索会同时询问三个来源。答案是一个列表。每个来源都有期限。\n" * 3


@given(st.text())
def test_utf_8_is_read_as_it_is(text: str) -> None:
    assume(text.strip() and not {"\x00", "\r"} & set(text) and not text.startswith("\ufeff"))
    assert decoded(text.encode()) == text


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_mark_says_the_encoding(encoding: str) -> None:
    marks = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
    assert decoded(marks.get(encoding, b"") + GERMAN.encode(encoding)) == GERMAN


@pytest.mark.parametrize(
    ("text", "encoding"), [(GERMAN, "latin-1"), (GERMAN, "cp1252"), (CHINESE, "gb18030"), (CHINESE, "big5hkscs")]
)
def test_other_encodings_are_detected(text: str, encoding: str) -> None:
    if encoding == "big5hkscs":
        text = "搜尋會同時詢問三個來源。答案是一個列表。每個來源都有期限。\n" * 3
    assert decoded(text.encode(encoding)) == text


def test_a_page_says_its_encoding() -> None:
    page = '<html><head><meta charset="iso-8859-2"></head><body>Zażółć gęślą jaźń</body></html>'
    assert decoded(page.encode("iso-8859-2")) == page


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "binary files"),
        (bytes(range(256)), "binary files"),
        (b"text\x00more", "binary files"),
        (b"", "empty files"),
        (b" \n\t", "empty files"),
        (b"\xef\xbb\xbf", "empty files"),
    ],
)
def test_what_is_no_text_is_refused(content: bytes, kind: str) -> None:
    with pytest.raises(NoText, match=kind):
        decoded(content)


@pytest.mark.parametrize("name", ["undefined", "unicode_escape", "idna", "utf-9", "base64"])
def test_a_declared_encoding_that_is_none_does_not_count(name: str) -> None:
    text = decoded(f'x = "Größe und Länge" # encoding="{name}"\n'.encode("latin-1") * 3)
    assert text.encode()
    assert "x = " in text


def test_lines_end_with_a_line_feed() -> None:
    assert decoded(b"a\r\nb\rc\n") == "a\nb\nc\n"
