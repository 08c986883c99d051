"""Forms of a text that Unicode holds to be the same: compatibility forms, capitals, accents, invisible signs.

`Unicode Standard Annex #15 <https://www.unicode.org/reports/tr15/>`_ defines the normal forms; chapter 5.18 of the
standard defines case folding.
"""

from __future__ import annotations

import unicodedata

import regex

_INVISIBLE = regex.compile(r"[\p{Default_Ignorable_Code_Point}™℠\u0640]+")
"""Soft hyphens, joiners, selectors of variants, marks of direction, Arabic's tatweel; and two signs that would become
letters."""
_SAME_LETTERS = str.maketrans({"ß": "ss", "ẞ": "SS", "İ": "I"})
_WORD_BREAK = "\u200b"
_ALIKE = str.maketrans(dict.fromkeys("’ʼ‘ʹ′＇׳״ʻ", "'") | dict.fromkeys("‐‑‒–—−﹣־", "-"))  # noqa: RUF001
_NOT_ASCII_DIGIT = regex.compile(r"[\p{Nd}--0-9]", regex.V1)


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
    return _NOT_ASCII_DIGIT.sub(_ascii_digit, normal)


def _ascii_digit(found: regex.Match[str]) -> str:
    """The digit in ASCII; as it is if ``unicodedata`` is of an older version of Unicode than ``regex``."""
    return str(unicodedata.decimal(found.group(), found.group()))


def casefolded(text: str) -> str:
    """A canonical text without the difference of capitals: ``ß`` is ``ss``, ``İ`` is ``i``."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", text.casefold().replace("i\u0307", "i"))
