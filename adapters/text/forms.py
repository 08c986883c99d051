"""Forms of a text that Unicode holds to be the same: compatibility forms, capitals, accents, invisible signs.

`Unicode Standard Annex #15 <https://www.unicode.org/reports/tr15/>`_ defines the normal forms; chapter 5.18 of the
standard defines case folding.
"""

from __future__ import annotations

import unicodedata

import regex
import tantivy

_INVISIBLE = regex.compile(r"[\p{Default_Ignorable_Code_Point}™℠\u0640]+")
"""Soft hyphens, joiners, selectors of variants, marks of direction, Arabic's tatweel; and two signs that would become
letters."""
_SAME_LETTERS = str.maketrans({"ß": "ss", "ẞ": "SS", "İ": "I"})
_WORD_BREAK = "\u200b"
_ALIKE = str.maketrans(dict.fromkeys("’ʼ‘ʹ′＇׳״ʻ", "'") | dict.fromkeys("‐‑‒–—−﹣־", "-"))  # noqa: RUF001
_MARKS = regex.compile(
    r"[[\p{M}&&[\p{scx=Latn}\p{scx=Grek}\p{scx=Cyrl}\p{scx=Hebr}\p{scx=Arab}\p{sc=Zinh}]]--[\u3099\u309A]]+", regex.V1
)
"""Accents and points. In other scripts a mark is a vowel or makes another letter."""
_NOT_ASCII_DIGIT = regex.compile(r"[\p{Nd}--0-9]", regex.V1)
_ascii_fold = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.ascii_fold()).build().analyze


def normal_form(text: str) -> str:
    """A text in the form in which values and names of fields are compared: NFKC, with ``ss`` for ``ß`` and ``I`` for
    ``İ``, without invisible signs."""
    if text.isascii():
        return text
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(_SAME_LETTERS)


def canonical(text: str) -> str:
    """A text in form NFKC, without invisible signs, with ASCII's apostrophe, hyphen and digits."""
    if text.isascii():
        return text
    normal = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text.replace(_WORD_BREAK, " ")).translate(_ALIKE))
    return _NOT_ASCII_DIGIT.sub(lambda found: str(unicodedata.decimal(found.group())), normal)


def casefolded(text: str) -> str:
    """A canonical text without the difference of capitals: ``ß`` is ``ss``, ``İ`` is ``i``."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", text.casefold().replace("i\u0307", "i"))


def folded(word: str) -> str:
    """A case-folded word without accents, ``ø`` as ``o``; in Hebrew and Arabic without points."""
    if word.isascii():
        return word
    bare = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", word)))
    return "".join(_ascii_fold(bare))
