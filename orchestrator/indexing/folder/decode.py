"""Bytes to text, whatever the encoding."""

from __future__ import annotations

import codecs
import re

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is its beginning
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_HEAD_BYTES = 8_192
"""A zero byte in the first ones says that a file is no text, as in Git."""
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_DECLARED_BYTES = 1_024
_NO_ENCODINGS = ("escape", "idna", "punycode", "undefined")
"""Parts of the names of codecs of Python that are no encodings of files."""


class NoText(ValueError):
    """A file has no text; the message says what kind of file it is, as a plural."""


class Unreadable(ValueError):
    """A file cannot be read; the message says why."""


def decoded(content: bytes) -> str:
    """The text, with ``\\n`` at the ends of lines: by its byte-order mark, as UTF-8, as it declares, or as it seems.

    :raises NoText: if it is empty, or no text.
    """
    text = _text(content).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise NoText("empty files")
    return text


def _text(content: bytes) -> str:
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    if b"\x00" in content[:_HEAD_BYTES]:
        raise NoText("binary files")
    try:
        return content.decode()
    except UnicodeDecodeError:
        pass  # another encoding
    if (declared := _DECLARED.search(content[:_DECLARED_BYTES])) and (text := _as_declared(content, declared[1])):
        return text
    from charset_normalizer import from_bytes  # noqa: PLC0415, takes 20 ms, and few files need it

    if (best := from_bytes(content).best()) is None:
        raise NoText("binary files")
    return str(best)


def _as_declared(content: bytes, name: bytes) -> str | None:
    encoding = name.decode("ascii").lower()
    if any(each in encoding for each in _NO_ENCODINGS):
        return None
    try:
        return content.decode(encoding)
    except (LookupError, UnicodeError):
        return None
