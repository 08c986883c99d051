"""What a file is that has no documents, one on each line, and what to do about it."""

from __future__ import annotations

import codecs
import re

HEAD_BYTES = 4_096
"""Bytes at the beginning of a file that show what it is."""
_EXAMPLE = '{"id": "1", "title": "a title", "text": "the text"}'
_MAX_SHOWN = 40
_KINDS = {
    b"%PDF": "a PDF",
    b"PK\x03\x04": "a ZIP archive or an office document",
    b"\x1f\x8b": "compressed: `gunzip -c FILE | trivium index -`",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "an SQLite database",
    b"\x28\xb5\x2f\xfd": "compressed: `zstd -dc FILE | trivium index -`",
    b"BZh": "compressed: `bunzip2 -c FILE | trivium index -`",
    b"\xfd7zXZ": "compressed: `xz -dc FILE | trivium index -`",
    codecs.BOM_UTF16_LE: "UTF-16: `iconv --from-code UTF-16 --to-code UTF-8 FILE | trivium index -`",
    codecs.BOM_UTF16_BE: "UTF-16: `iconv --from-code UTF-16 --to-code UTF-8 FILE | trivium index -`",
}
"""What the first bytes of a file that is no text say."""
_BEIR = re.compile(rb'\{\s*"_id"')
_PIPE = " | trivium index -"


def describe(head: bytes) -> str:
    """What is wrong with a file as a whole; empty if its lines may be documents.

    :param head: the first :data:`HEAD_BYTES`, or all of it.
    """
    for start, kind in _KINDS.items():
        if head.startswith(start):
            return f"{kind}; allowed is NDJSON, one document on each line: {_EXAMPLE}"
    lines = [line.strip() for line in head.removeprefix(codecs.BOM_UTF8).splitlines() if line.strip()]
    if not lines:
        return ""  # as many documents as in a file of blank lines
    if lines[0].startswith(b"["):
        return "a JSON array; write one document on each line: `jq -c '.[]' FILE | trivium index -`"
    is_open = lines[0].startswith(b"{") and lines[0].endswith((b",", b"{", b"["))
    if is_open and b"\n" in head.lstrip():  # the whole line is known
        return "JSON over several lines; write each document on one line: `jq -c . FILE | trivium index -`"
    if _BEIR.match(lines[0]):
        return (
            "of BEIR, whose lines have `_id`: name the folder that it is in, which has the corpus and its graph files"
        )
    if b"\x00" in head:
        return f"no text; allowed is NDJSON, one document on each line: {_EXAMPLE}"
    if is_other_text(head):
        shown = lines[0].decode("utf-8", "replace")[:_MAX_SHOWN]
        return f"no NDJSON: it begins with {shown!r}; write one document on each line: {_EXAMPLE}"
    return ""


def is_other_text(head: bytes) -> bool:
    """Whether a file is a text without JSON, which may be a document itself.

    :param head: the first :data:`HEAD_BYTES`, or all of it.
    """
    if b"\x00" in head or any(head.startswith(start) for start in _KINDS):
        return False
    lines = [line.strip() for line in head.removeprefix(codecs.BOM_UTF8).splitlines() if line.strip()]
    return bool(lines) and not any(line.startswith((b"{", b"[")) for line in lines)


def describe_body(head: bytes) -> str:
    """As :func:`describe`, of the body of a request: what converts a file is not followed by `trivium index`."""
    return describe(head).replace(_PIPE, "")
