"""Words without accents."""

from __future__ import annotations

import unicodedata

import regex
import tantivy

_MARKS = regex.compile(
    r"[[\p{M}&&[\p{scx=Latn}\p{scx=Grek}\p{scx=Cyrl}\p{scx=Hebr}\p{scx=Arab}\p{sc=Zinh}]]--[\u3099\u309A]]+", regex.V1
)
"""Accents and points. In other scripts a mark is a vowel or makes another letter."""
_ascii_fold = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.ascii_fold()).build().analyze


def folded(word: str) -> str:
    """A case-folded word without accents, ``ø`` as ``o``; in Hebrew and Arabic without points."""
    if word.isascii():
        return word
    bare = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", word)))
    return "".join(_ascii_fold(bare))
