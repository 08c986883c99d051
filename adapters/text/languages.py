"""Stems and stop words of languages, by Snowball's stemmers (M. F. Porter: "Snowball", 2001) as tantivy has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import tantivy

from adapters.text.folding import folded

ENGLISH = "english"
"""The language of texts and queries whose language is unknown."""
_CODES = {
    "arabic": ("ar", "ara"),
    "danish": ("da", "dan"),
    "dutch": ("nl", "nld", "dut"),
    ENGLISH: ("en", "eng"),
    "finnish": ("fi", "fin"),
    "french": ("fr", "fra", "fre"),
    "german": ("de", "deu", "ger"),
    "greek": ("el", "ell", "gre"),
    "hungarian": ("hu", "hun"),
    "italian": ("it", "ita"),
    "norwegian": ("no", "nor", "nb", "nob", "nn", "nno"),
    "portuguese": ("pt", "por"),
    "romanian": ("ro", "ron", "rum"),
    "russian": ("ru", "rus"),
    "spanish": ("es", "spa"),
    "swedish": ("sv", "swe"),
    "tamil": ("ta", "tam"),
    "turkish": ("tr", "tur"),
}
"""The languages with stems, and their codes in ISO 639-1 and 639-2."""
LANGUAGES = tuple(_CODES)
_BY_CODE = {code: language for language, codes in _CODES.items() for code in codes}
_WITHOUT_STOP_WORDS = frozenset({"arabic", "greek", "romanian", "tamil", "turkish"})
"""Languages whose stop words tantivy does not have."""
_MAX_STOP_WORD_CHARS = 32
_MIN_STOP_WORDS = 2
"""Of a language in a query that is taken for its language: one may be a word of another, such as ``c`` or ``die``."""


def language_of(tag: str | None) -> str:
    """The language of a document that says ``de``, ``de-AT`` (RFC 5646), ``deu`` or ``German``; else English."""
    if not tag:
        return ENGLISH
    name = tag.strip().lower()
    code = name.partition("-")[0].partition("_")[0]
    return _BY_CODE.get(code, name if name in _CODES else ENGLISH)


@lru_cache(maxsize=32_768)
def stem(word: str, language: str) -> str:
    """The stem of a case-folded word, without accents.

    English stems are of words without accents, so that ``café`` and ``cafe`` have the same one; in other languages
    endings have accents, so that a word loses them afterwards.
    """
    if language == ENGLISH:
        return _one(_stemmer(ENGLISH)(folded(word)), word)
    return folded(_one(_stemmer(language)(word), word)) or word


def _one(stems: Sequence[str], word: str) -> str:
    return stems[0] if stems and stems[0] else word


@lru_cache(maxsize=len(_CODES))
def _stemmer(language: str) -> Callable[[str], Sequence[str]]:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.stemmer(language))
    analyzer: tantivy.TextAnalyzer = builder.build()
    return analyzer.analyze


@lru_cache(maxsize=8_192)
def is_stop_word(word: str, language: str = ENGLISH) -> bool:
    """Whether a case-folded word carries no information in a language, such as ``the``."""
    return len(word) <= _MAX_STOP_WORD_CHARS and language not in _WITHOUT_STOP_WORDS and not _content(language)(word)


@lru_cache(maxsize=len(_CODES))
def _content(language: str) -> Callable[[str], Sequence[str]]:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.stopword(language))
    analyzer: tantivy.TextAnalyzer = builder.build()
    return analyzer.analyze


def language_of_query(words: Iterable[str], languages: Iterable[str]) -> str:
    """The language, of those that documents have, with most of a query's words as stop words; English in doubt."""
    counted = list(words)
    counts = {each: sum(is_stop_word(word, each) for word in counted) for each in sorted({*languages} - {ENGLISH})}
    best = max(counts, key=lambda each: counts[each], default=ENGLISH)
    least = max(_MIN_STOP_WORDS, 1 + sum(is_stop_word(word) for word in counted))
    return best if counts.get(best, 0) >= least else ENGLISH
