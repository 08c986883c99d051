"""Names of entities: their normal form, and their recognition in a text by capitalisation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import dropwhile

import tantivy

MAX_WORDS = 8
"""Maximum number of words of a name: a longer title is a sentence."""
MAX_CHARS = 512
"""Maximum length of a name in normal form: an index of a server rejects much longer ones."""

_SLICE_CHARS = 4_096
_MAX_WORD_CHARS = 4_096
"""Maximum length of a word of a long text; a longer run of letters and digits is split."""
_SEPARATOR = re.compile(r"[^\w'’]|_")
_SEPARATORS = re.compile(rf"(?:{_SEPARATOR.pattern})+")
_MAX_STOPWORDS_CHARS = 64
"""Longer texts are not stop words, and are not cached."""
_MAX_PHRASE_CHARS = 4_096
"""Maximum length of a run of capitalised words; a longer one is split, and is no name."""
_POSSESSIVE = re.compile(r"['’]s\b")
_WORD = re.compile(r"\w+")
_NOT_WORD = re.compile(r"[\W_]+")

_AUTHOR = re.compile(r"([^,]{1,100}),\s*(?:[^\W\d_a-z]\.?[\s-]*){1,4}")

_CAPITAL = re.compile(r"[^\W\d_a-zß-öø-ÿ]")
_CAPITALISED = rf"{_CAPITAL.pattern}[\w&'’-]*"
_PHRASE = re.compile(rf"{_CAPITALISED}(?:\s+(?:(?:of|the|and|de|la|von|van|for|in)\s+){{0,2}}{_CAPITALISED}){{0,63}}")
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
    """The surname, in normal form, of a name as in a bibliography: ``Knuth, D. E.``. Empty for any other name."""
    match = _AUTHOR.fullmatch(name.strip())
    return " ".join(words(match.group(1))) if match else ""


def words(text: str) -> list[str]:
    """The words of a text in the normal form of :func:`normalize`, in order."""
    if len(text) <= _SLICE_CHARS:
        return _words(text)
    return [word for part in _slices(text) for word in _words(part)]


def _slices(text: str) -> Iterator[str]:
    """Split a text between words into slices, because a regular expression does not release the GIL.

    A separator ends a slice only if it is still one after decomposition: ``™`` becomes letters, an accent nothing.
    """
    start = 0
    while len(text) - start > _SLICE_CHARS:
        first = start + _SLICE_CHARS
        last = min(first + _MAX_WORD_CHARS, len(text))
        found = _SEPARATOR.finditer(text, first, last)
        end = next((each.end() for each in found if _SEPARATORS.fullmatch(_decomposed(each.group()))), last)
        yield text[start:end]
        start = end
    yield text[start:]


def _decomposed(text: str) -> str:
    """The text in lower case, without accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(each for each in decomposed if not unicodedata.combining(each)).lower()


def _words(text: str) -> list[str]:
    return _NOT_WORD.sub(" ", _POSSESSIVE.sub("", _decomposed(text))).split()


def is_stopword(text: str) -> bool:
    """Whether all words of a text are English stop words, which alone are not a name."""
    return len(text) <= _MAX_STOPWORDS_CHARS and _is_stopword(text)


@lru_cache(maxsize=65_536)
def _is_stopword(text: str) -> bool:
    return not _stopwords.analyze(text)


def mentioned(text: str) -> tuple[str, ...]:
    """The names in a text, each once, by rule: runs of capitalised words, in the order of their first occurrence.

    A single word at the start of a sentence is not a name: there every word is capitalised.
    """
    return tuple(dict.fromkeys(_phrases(text)))


def _phrases(text: str) -> Iterator[str]:
    for match in _runs(text):
        phrase_words = match.group().split()
        if _SENTENCE_START.search(text, max(0, match.start() - 8), match.start()):
            phrase_words = list(dropwhile(lambda word: is_stopword(word.lower()), phrase_words))
            if len(phrase_words) < 2:
                continue
        # "RESULTS In": a heading, and the first word of the sentence after it
        while phrase_words and is_stopword(phrase_words[-1].lower()):
            phrase_words.pop()
        phrase = " ".join(phrase_words)
        if 0 < len(phrase_words) <= MAX_WORDS and not is_stopword(phrase.lower()) and len(phrase) > 1:
            yield phrase


def _runs(text: str) -> Iterator[re.Match[str]]:
    """The runs of capitalised words, searched in steps as short as those of :func:`_slices`, for the same reason."""
    start = 0
    while start < len(text):
        capital = _CAPITAL.search(text, start, start + _SLICE_CHARS)
        run = capital and _PHRASE.match(text, capital.start(), capital.start() + _MAX_PHRASE_CHARS)
        if run:
            yield run
        start = run.end() if run else start + _SLICE_CHARS
