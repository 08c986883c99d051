"""From text to terms, the same for documents and queries; and from a query to what is looked up."""

from __future__ import annotations

import re
from dataclasses import dataclass

import tantivy

VERSION = "en-stem-1"
"""Part of the index version: changes whenever the same text would give other terms."""

_QUOTED = re.compile(r'"([^"]+)"')
_LONGEST = 64
"""Characters; a longer token is a hash, a key or a mistake, and nobody types it."""


def analyzer() -> tantivy.TextAnalyzer:
    """Words in lower case without accents, stemmed (Porter 2, English). Stop words stay: phrases need them."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(_LONGEST))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


def _content_analyzer() -> tantivy.TextAnalyzer:
    """As :func:`analyzer`, without stop words: they cost two thirds of a search and change no ranking."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(_LONGEST))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
        .filter(tantivy.Filter.stopword("english"))
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


_ALL = analyzer()
_CONTENT = _content_analyzer()

MAX_TERMS = 64
"""Distinct terms looked up at most, the first of a longer query: what a search costs must not grow with it."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a query asks of the keyword index.

    ``words`` count where they stand; each of ``phrases`` (two terms and more, in order) must stand. ``must`` are
    quoted single words.
    """

    words: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...]
    must: tuple[str, ...]


def terms(query: str) -> Terms:
    """Read a query: text in double quotes must occur as written, up to stemming; the rest is wished for."""
    quoted = [tuple(_ALL.analyze(phrase)) for phrase in _QUOTED.findall(query)]
    rest = _QUOTED.sub(" ", query) if quoted else query
    words = _CONTENT.analyze(rest)
    if not words and not quoted:
        words = _ALL.analyze(rest)  # "to be or not to be"
    inside = [term for phrase in quoted for term in phrase]
    return Terms(
        words=tuple(dict.fromkeys([*words, *inside]))[:MAX_TERMS],
        phrases=tuple(phrase[:MAX_TERMS] for phrase in quoted if len(phrase) > 1),
        must=tuple(phrase[0] for phrase in quoted if len(phrase) == 1),
    )
