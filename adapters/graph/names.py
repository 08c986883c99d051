"""Names of entities: their normal form, and their recognition in a text by capitalisation."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import partial
from itertools import dropwhile

import regex

from adapters.text.english import is_function_word, is_ordinary_word
from adapters.text.folding import folded
from adapters.text.forms import casefolded
from adapters.text.languages import ENGLISH, LANGUAGES, is_stop_word
from adapters.text.segmentation import MANY_CHUNKS, CachedByChunk, Compound, chunks, compounds, is_signed_name

MAX_WORDS = 8
"""Maximum number of words of a name that no author lists as one: a longer title is a sentence."""
MAX_LISTED_WORDS = 32
"""Maximum number of words of a name that an author lists; of characters, in a script without spaces."""
MAX_CHARS = 512
"""Maximum length of a name in normal form: an index of a server rejects much longer ones."""

_SLICE_CHARS = 4_096
_MAX_PHRASE_CHARS = 4_096
"""Maximum length of a run of capitalised words; a longer one is split, and is no name."""
_MAX_SAMPLED_WORDS = 64
"""Words of a text that are looked at to find its language."""

_AUTHOR = regex.compile(r"([^,]{1,100}),\s*(?:[^\W\d_a-z]\.?[\s-]*){1,4}")

_CAPITAL = regex.compile(r"(?<![\p{L}\p{M}\p{N}_-])\.?[\p{Lu}&&\p{Latin}]", regex.V1)
_CAPITALISED = (
    r"(?:(?:Mr|Mrs|Ms|Dr|St|Prof)\.(?=\s)|(?:[\p{Lu}&&\p{Latin}]\.){1,8}(?![\p{L}\p{N}])"
    r"|\.?[\p{Lu}&&\p{Latin}][\w\p{M}&'’-]*[+#]*)"
)
_PHRASE = regex.compile(
    rf"{_CAPITALISED}(?:\s+(?:(?:of|the|and|de|la|von|van|for|in)\s+){{0,2}}{_CAPITALISED}){{0,63}}", regex.V1
)
_SENTENCE_START = regex.compile(r"(?:^|[.!?:;|—–]\s+|\n\s*)(?:[-*•>#|]+\s*|\w{1,2}[.)]\s+){0,2}[\"'“‘(\[*_]*$")  # noqa: RUF001
_FIRST_PERSON = regex.compile(r"I(?:['’]\p{L}+)?").fullmatch
_TEXT_WORD = regex.compile(r"[\p{L}\p{M}]+")
_MIN_KNOWN = 0.3
"""A text is in a language if at least this fraction of its words are ordinary words of it."""
_MIN_MARKED = 0.15
"""The same for a text with a word of :data:`_ONLY_ENGLISH`."""
_ONLY_ENGLISH = frozenset({"and", "the", "their", "there", "these", "they", "this", "that", "which", "with", "from"})
_MAX_NAME_ALONE = 3
"""A text of so few words, all capitalised, is a name in any language."""
_OTHER_LETTER = regex.compile(r"[\p{L}--[a-zàáâãäåæçèéêëìíîïñòóôõöøùúûüÿœß]]", regex.V1)
_READ_LANGUAGES = frozenset(
    {ENGLISH, "danish", "dutch", "french", "italian", "norwegian", "portuguese", "spanish", "swedish"}
)
"""Languages in which a capital inside a sentence begins a name, and names keep their form."""
_OTHER_LANGUAGES = tuple(each for each in LANGUAGES if each != ENGLISH)


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
    return [word for of_chunk in words_of_chunk.each(chunks(text)) for word in of_chunk]


def words_by_case(text: str) -> tuple[list[str], set[str]]:
    """The words of a text: see :func:`words`; and those of them that it has in lower case, too."""
    found: list[str] = []
    in_lower_case: set[str] = set()
    parts = list(chunks(text))
    for chunk, of_chunk in zip(parts, words_of_chunk.each(parts), strict=True):
        found += of_chunk
        if not is_capitalised(chunk):
            in_lower_case.update(of_chunk)
    return found, in_lower_case


def is_capitalised(chunk: str) -> bool:
    """Whether the first letter of a part of a text is a capital."""
    if chunk[:1].isalpha():  # most are
        return chunk[0].isupper()
    return next((each.isupper() for each in chunk if each.isalpha()), False)


@partial(CachedByChunk, size=MANY_CHUNKS)
def words_of_chunk(chunk: str) -> tuple[str, ...]:
    """The words of a part of a text without white space: see :func:`words`."""
    return tuple(word for each in compounds(chunk) for word in _words(each) if word)


def _words(compound: Compound) -> Iterator[str]:
    if compound.is_unspaced:
        return map(folded, compound.pieces)
    if compound.signed and is_signed_name(compound.signed):
        return iter((folded(compound.signed),))
    return (folded(run.word) for run in compound.runs)


def has_only_stop_words(text: str, language: str = ENGLISH) -> bool:
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
    """The language of a text, as far as its first words tell it; empty if they do not."""
    found = [casefolded(each) for each in _TEXT_WORD.findall(text, 0, _SLICE_CHARS)[:_MAX_SAMPLED_WORDS]]
    if len(found) <= _MAX_NAME_ALONE and text.istitle() and not any(map(_OTHER_LETTER.search, found)):
        return ENGLISH
    in_english = sum(map(is_ordinary_word, found))
    needed = max(len(found) * _MIN_KNOWN, 1)
    if not _ONLY_ENGLISH.isdisjoint(found):
        needed = len(found) * _MIN_MARKED
        if in_english >= len(found) * _MIN_KNOWN:
            return ENGLISH
    if in_english < needed and sum(_OTHER_LETTER.search(word) is not None for word in found) >= needed:
        return ""
    stop_words = sum(is_stop_word(word) or is_function_word(word) for word in found)
    by_language = {each: sum(is_stop_word(word, each) for word in found) for each in _OTHER_LANGUAGES}
    most = max(by_language.values())
    if most > 1 and most >= stop_words + (in_english >= len(found) / 2):
        # Of languages that share their stop words, the one without names by rule.
        best = min((each for each in by_language if by_language[each] == most), key=_READ_LANGUAGES.__contains__)
        return best if most >= needed else ""
    return ENGLISH if in_english >= needed else ""


def _phrases(text: str, language: str) -> Iterator[str]:
    def says_nothing(word: str) -> bool:
        return has_only_stop_words(word.lower(), language) or is_function_word(word.lower())

    for match in _runs(text):
        is_start = _SENTENCE_START.search(text, max(0, match.start() - 8), match.start()) is not None
        for part in _without_first_person(match.group().split()):
            phrase_words = list(dropwhile(says_nothing, part)) if is_start else part
            is_single, is_start = is_start and len(phrase_words) < 2, False
            if is_single:
                continue
            # "RESULTS In": a heading, and the first word of the sentence after it
            while phrase_words and says_nothing(phrase_words[-1]):
                phrase_words.pop()
            phrase = " ".join(phrase_words).rstrip("'’-")
            if (
                0 < len(phrase_words) <= MAX_WORDS
                and not has_only_stop_words(phrase.lower(), language)
                and len(phrase) > 1
            ):
                yield phrase


def _without_first_person(phrase: list[str]) -> Iterator[list[str]]:
    """The parts of a run of capitalised words between ``I``, ``I'm`` and the like, which are no names."""
    part: list[str] = []
    for word in phrase:
        if _FIRST_PERSON(word):
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _runs(text: str) -> Iterator[regex.Match[str]]:
    """The runs of capitalised words, searched in short steps, because a regular expression does not release the GIL."""
    start = 0
    while start < len(text):
        capital = _CAPITAL.search(text, start, start + _SLICE_CHARS + 1)  # a full stop, and its capital
        run = capital and _PHRASE.match(text, capital.start(), capital.start() + _MAX_PHRASE_CHARS)
        if run:
            yield run
        start = run.end() if run else start + _SLICE_CHARS
