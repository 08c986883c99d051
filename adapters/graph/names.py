"""When two names are the same name, and which capitalised phrases of a text are names at all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import tantivy

MAX_WORDS = 8
"""A longer title is a sentence, not a name."""

_POSSESSIVE = re.compile(r"['’]s\b")
_WORD = re.compile(r"\w+")
_NOT_WORD = re.compile(r"[\W_]+")

_AUTHOR = re.compile(r"([^,]{1,100}),\s*(?:[^\W\d_a-z]\.?[\s-]*){1,4}")

_CAPITALISED = r"[^\W\d_a-zß-öø-ÿ][\w&'’-]*"
_PHRASE = re.compile(rf"{_CAPITALISED}(?:\s+(?:(?:of|the|and|de|la|von|van|for|in)\s+){{0,2}}{_CAPITALISED})*")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;]\s+|\n\s*)[\"'(\[]*$")

_stopwords = (
    tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    .filter(tantivy.Filter.lowercase())
    .filter(tantivy.Filter.stopword("english"))
    .build()
)


def normalize(name: str) -> str:
    """The form in which names are compared: lower case, no accents, no punctuation, no possessive, no ``(note)``.

    Empty if nothing is left.
    """
    name = name.rstrip()
    if name.endswith(")"):
        name = name[: name.rfind("(")] if "(" in name else name
    return " ".join(words(name))


def surname(name: str) -> str:
    """Of a name that is written as in a bibliography, ``Knuth, D. E.``, the surname in normal form; else empty."""
    match = _AUTHOR.fullmatch(name.strip())
    return " ".join(words(match.group(1))) if match else ""


def words(text: str) -> list[str]:
    """The words of a text in the form of :func:`normalize`."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text.casefold())
        text = "".join(each for each in decomposed if not unicodedata.combining(each))
    return _NOT_WORD.sub(" ", _POSSESSIVE.sub("", text.lower())).split()


@lru_cache(maxsize=65_536)
def is_stopword(word: str) -> bool:
    """Whether a word is too common in English to name anything."""
    return not _stopwords.analyze(word)


def mentioned(text: str) -> tuple[str, ...]:
    """Names that a text mentions, by rule: runs of capitalised words, in order of first sight.

    A single word that only ever starts a sentence is not taken: there every word has a capital.
    """
    return tuple(dict.fromkeys(_phrases(text)))


def _phrases(text: str) -> Iterator[str]:
    for match in _PHRASE.finditer(text):
        parts = match.group().split()
        if _SENTENCE_START.search(text, max(0, match.start() - 8), match.start()):
            while parts and is_stopword(parts[0].lower()):
                parts.pop(0)
            if len(parts) < 2:
                continue
        while parts and is_stopword(parts[-1].lower()):  # "RESULTS In": a heading, and how its sentence begins
            parts.pop()
        phrase = " ".join(parts)
        if 0 < len(parts) <= MAX_WORDS and not is_stopword(phrase.lower()) and len(phrase) > 1:
            yield phrase
