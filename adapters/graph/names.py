"""Names of entities: their normal form, and their recognition in a text by capitalisation."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import dropwhile

import regex

from adapters.text.forms import casefolded, folded
from adapters.text.languages import ENGLISH, LANGUAGES, is_stop_word, language_of_query
from adapters.text.segmentation import Compound, chunks, compounds

MAX_WORDS = 8
"""Maximum number of words of a name that no author lists as one: a longer title is a sentence."""
MAX_LISTED_WORDS = 16
"""Maximum number of words of a name that an author lists."""
MAX_CHARS = 512
"""Maximum length of a name in normal form: an index of a server rejects much longer ones."""

_SLICE_CHARS = 4_096
_MAX_PHRASE_CHARS = 4_096
"""Maximum length of a run of capitalised words; a longer one is split, and is no name."""
_MAX_CACHED_CHARS = 48
_MAX_SAMPLED_WORDS = 64
"""Words of a text that are looked at to find its language."""

_AUTHOR = regex.compile(r"([^,]{1,100}),\s*(?:[^\W\d_a-z]\.?[\s-]*){1,4}")
_SIGNED_NAME = regex.compile(r"\.?[^\W_]+[+#]*")
"""Signs that a name may have: ``C++``, ``C#``, ``.NET``."""

_CAPITAL = regex.compile(r"(?<![\p{L}\p{M}\p{N}_])\.?[\p{Lu}&&\p{Latin}]", regex.V1)
_CAPITALISED = r"\.?[\p{Lu}&&\p{Latin}][\w\p{M}&'’-]*[+#]*"
_PHRASE = regex.compile(
    rf"{_CAPITALISED}(?:\s+(?:(?:of|the|and|de|la|von|van|for|in)\s+){{0,2}}{_CAPITALISED}){{0,63}}", regex.V1
)
_SENTENCE_START = regex.compile(r"(?:^|[.!?:;]\s+|\n\s*)[\"'(\[]*$")
_TEXT_WORD = regex.compile(r"[\p{L}\p{M}]+")
_MIN_ENGLISH = 1 / 8
"""A text is English if at least this fraction of its words are English stop words."""
_OTHER_LETTER = regex.compile(r"[\p{L}--[a-zàáâãäåæçèéêëìíîïñòóôõöøùúûüÿœß]]", regex.V1)
_READ_LANGUAGES = frozenset(
    {ENGLISH, "danish", "dutch", "french", "italian", "norwegian", "portuguese", "romanian", "spanish", "swedish"}
)
"""Languages in which a capital inside a sentence begins a name, and names keep their form."""


def normalize(name: str) -> str:
    """The form in which names are compared: lower case, no accents, no punctuation, no possessive, no ``(note)``.

    Empty if nothing is left.
    """
    name = name.rstrip()
    if name.endswith(")"):
        name = name[: name.rfind("(")] if "(" in name else name
    return " ".join(words(name))


def normal_forms(name: str) -> set[str]:
    """The normal form of a name, and that with its note: ``Mercury (planet)`` is another than ``Mercury (element)``."""
    return {normalize(name), " ".join(words(name))} - {""}


def surname(name: str) -> str:
    """The surname, in normal form, of a name as in a bibliography: ``Knuth, D. E.``. Empty for any other name."""
    match = _AUTHOR.fullmatch(name.strip())
    return " ".join(words(match.group(1))) if match else ""


def words(text: str) -> list[str]:
    """The words of a text in the normal form of :func:`normalize`, in order.

    In a script without spaces each character is one, so that a name is found inside a text.
    """
    return [word for chunk in chunks(text) for word in words_of_chunk(chunk)]


def words_of_chunk(chunk: str) -> tuple[str, ...]:
    """The words of a part of a text without white space: see :func:`words`."""
    return _cached_words(chunk) if len(chunk) <= _MAX_CACHED_CHARS else _read_words(chunk)


def _read_words(chunk: str) -> tuple[str, ...]:
    return tuple(word for each in compounds(chunk) for word in _words(each))


_cached_words = lru_cache(maxsize=16_384)(_read_words)


def _words(compound: Compound) -> Iterator[str]:
    if compound.is_unspaced:
        return map(folded, compound.pieces)
    if compound.signed and _SIGNED_NAME.fullmatch(compound.signed):
        return iter((folded(compound.signed),))
    return (folded(run.word) for run in compound.runs)


def is_stopword(text: str, language: str = ENGLISH) -> bool:
    """Whether all words of a text are stop words, which alone are not a name."""
    return all(is_stop_word(word, language) for word in text.split())


def mentioned(text: str) -> tuple[str, ...]:
    """The names in a text, each once, by rule: runs of capitalised words, in the order of their first occurrence.

    A single word at the start of a sentence is not a name: there every word is capitalised. Names are found in Latin
    script, in languages in which a capital means a name; in other texts there are none.
    """
    text = text if text.isascii() else unicodedata.normalize("NFC", text)
    language = _language(text)
    return tuple(dict.fromkeys(_phrases(text, language))) if language in _READ_LANGUAGES else ()


def _language(text: str) -> str:
    """The language of a text, as far as its first words tell it; empty for one that is not known."""
    found = [casefolded(each) for each in _TEXT_WORD.findall(text, 0, _SLICE_CHARS)[:_MAX_SAMPLED_WORDS]]
    stop_words = sum(map(is_stop_word, found))
    if stop_words > 1 and stop_words >= len(found) * _MIN_ENGLISH:
        return ENGLISH
    if sum(_OTHER_LETTER.search(word) is not None for word in found) >= max(stop_words, 1):
        return ""
    return language_of_query(found, LANGUAGES.values())


def _phrases(text: str, language: str) -> Iterator[str]:
    for match in _runs(text):
        phrase_words = match.group().split()
        if _SENTENCE_START.search(text, max(0, match.start() - 8), match.start()):
            phrase_words = list(dropwhile(lambda word: is_stopword(word.lower(), language), phrase_words))
            if len(phrase_words) < 2:
                continue
        # "RESULTS In": a heading, and the first word of the sentence after it
        while phrase_words and is_stopword(phrase_words[-1].lower(), language):
            phrase_words.pop()
        phrase = " ".join(phrase_words)
        if 0 < len(phrase_words) <= MAX_WORDS and not is_stopword(phrase.lower(), language) and len(phrase) > 1:
            yield phrase


def _runs(text: str) -> Iterator[regex.Match[str]]:
    """The runs of capitalised words, searched in short steps, because a regular expression does not release the GIL."""
    start = 0
    while start < len(text):
        capital = _CAPITAL.search(text, start, start + _SLICE_CHARS + 1)  # a full stop, and its capital
        run = capital and _PHRASE.match(text, capital.start(), capital.start() + _MAX_PHRASE_CHARS)
        if run:
            yield run
        start = run.end() if run else start + _SLICE_CHARS
