"""The part of a text with most words of the query, and these words marked.

Words are compared as the keyword index compares them: in lower case, without accents, by their stems.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from typing import TypeAlias

from adapters.keyword.analysis import comparable, content_words, stemmed_words
from adapters.text.segmentation import is_unspaced

SNIPPET_CHARS = 200
"""Maximum length of a snippet, without marks and ellipses."""
_SEARCHED_CHARS = 20_000
"""Characters from the start of a text in which words are looked for."""
_MAX_PER_WORD, _MAX_LOOKED_AT = 4, 16
"""Occurrences of a word that are considered, and of its first letters."""
_MAX_WORDS = 16
"""Words of a query that are marked."""
_MAX_LOOKED_FOR = 64
"""Looking for more letters one by one takes longer than reading the text."""
_BORDER_CHARS = 24
"""A snippet is made this much shorter, at most, to begin and end at a word."""
START, END = "<mark>", "</mark>"
_word_end = re.compile(r"[^\W_]*").match
_special = re.compile("""[&<>"']""").search


# The functions below use plain tuples: a snippet is made for every hit, and objects would take half of its time.

_Word: TypeAlias = tuple[str, str, bool, bool]
"""A word of the query: the letters that all of its forms begin with, its stem, whether the letters are a form, and
whether it may be inside a word, as in scripts without spaces."""
_Occurrence: TypeAlias = tuple[int, int, int]
"""Where a word of the query begins and ends in a text, and its number."""


def snippet(text: str, query: str) -> str:
    """The snippet of a text for a query, as HTML; the beginning of the text if it has no word of the query.

    White space is one space, and an ellipsis shows where the text goes on.
    """
    shown = _densest(_occurrences(text, _words(query)))
    start, end = _borders(text, shown[0][0] if shown else 0, shown[-1][1] if shown else 0)
    encode = escape if _special(text, start, end) else str
    parts, at = ["…"] if start else [], start
    for first, last, _ in shown:
        parts += (encode(text[at:first]), START, encode(text[first:last]), END)
        at = last
    parts.append(encode(text[at:end]))
    if end < len(text):
        parts.append("…")
    return " ".join("".join(parts).split())


@lru_cache(maxsize=1_024)
def _words(query: str) -> tuple[_Word, ...]:
    words = {(_common_prefix(word, stem), stem) for word, stem in content_words(query)}
    return tuple(
        (prefix, stem, _stem(prefix) == stem, bool(is_unspaced(prefix))) for prefix, stem in sorted(words)[:_MAX_WORDS]
    )


def _common_prefix(word: str, stem: str) -> str:
    """``studies`` and its stem ``studi`` have ``stud`` in common with ``study``."""
    length = next((n for n, (a, b) in enumerate(zip(word, stem, strict=False)) if a != b), min(len(word), len(stem)))
    return stem[: length - 1] if length > 1 and stem[:length].endswith("i") else stem[:length]


@lru_cache(maxsize=16_384)
def _stem(word: str) -> str:
    return " ".join(stemmed_words(word))


def _occurrences(text: str, words: tuple[_Word, ...]) -> list[_Occurrence]:
    """Where the text has words of the query, in order."""
    folded_text, positions = _folded_text(text[:_SEARCHED_CHARS])
    found: list[_Occurrence] = []
    find = folded_text.find
    for number, (prefix, stem, is_word, is_inside) in enumerate(words):
        length, count = len(prefix), 0
        at = find(prefix)
        for _ in range(_MAX_LOOKED_AT):
            if at < 0 or count == _MAX_PER_WORD:
                break
            end = at + length
            if is_inside:
                found.append((at, end, number))
                count += 1
            elif not at or not folded_text[at - 1].isalnum():
                goes_on = folded_text[end : end + 1].isalnum()
                if goes_on:
                    end = _word_end(folded_text, end).end()  # type: ignore[union-attr]  # it matches an empty text, too
                if _stem(folded_text[at:end]) == stem if goes_on else is_word:
                    found.append((at, end, number))
                    count += 1
            at = find(prefix, end)
    found.sort()
    if not folded_text.isascii():  # else no word of the query begins inside another
        found = _without_overlaps(found)
    return [(positions[at], positions[end], number) for at, end, number in found] if positions else found


def _without_overlaps(occurrences: list[_Occurrence]) -> list[_Occurrence]:
    """The sorted occurrences; those that overlap or touch are one, as pairs of characters do."""
    merged = occurrences[:1]
    for start, end, word in occurrences[1:]:
        first, last, of_first = merged[-1]
        if start <= last:
            merged[-1] = (first, max(last, end), of_first)
        else:
            merged.append((start, end, word))
    return merged


def _densest(occurrences: list[_Occurrence]) -> list[_Occurrence]:
    """Those within the length of a snippet that have the most distinct words; of several, the most, then the first."""
    best, chosen = (0, 0), (0, 0)
    counts = [0] * _MAX_WORDS
    distinct = last = 0
    for first, (start, _, word) in enumerate(occurrences):
        while last < len(occurrences) and (last <= first or occurrences[last][1] - start <= SNIPPET_CHARS):
            number = occurrences[last][2]
            distinct += not counts[number]
            counts[number] += 1
            last += 1
        if (distinct, last - first) > best:
            best, chosen = (distinct, last - first), (first, last)
        counts[word] -= 1
        distinct -= not counts[word]
    return occurrences[slice(*chosen)]


def _borders(text: str, first: int, last: int) -> tuple[int, int]:
    """Where the snippet around a part of the text begins and ends: at words, if there are any."""
    start = max(0, first - (SNIPPET_CHARS - (last - first)) // 3)
    end = min(len(text), max(last, start + SNIPPET_CHARS))
    start = max(0, min(start, end - SNIPPET_CHARS, first))
    if start:
        at = text.find(" ", start, min(first, start + _BORDER_CHARS))
        start = at + 1 if at >= 0 else start
    if end < len(text):
        at = text.rfind(" ", max(last, end - _BORDER_CHARS), end + 1)
        end = at if at >= 0 else end
    return start, end


def _folded_text(text: str) -> tuple[str, list[int] | None]:
    """The text as words are compared, and for each place in it the place in the text; ``None`` if they are equal."""
    if text.isascii():
        return text.lower(), None
    folded_text = text.translate(_FOLDED)
    if len(folded_text) == len(text) and not _FOLDED.has_resized(text):
        return folded_text, None
    positions = [place for place, letter in enumerate(text) for _ in _FOLDED[ord(letter)]]
    return folded_text, [*positions, len(text)]


class _Folding(dict[int, str]):
    """The folded form of each letter, filled when it is first needed."""

    def __init__(self) -> None:
        self._resized: set[str] = set()

    def has_resized(self, text: str) -> bool:
        """Whether the text has a letter whose folded form has another length."""
        if len(self._resized) > _MAX_LOOKED_FOR:
            return not self._resized.isdisjoint(text)
        return any(letter in text for letter in self._resized)

    def __missing__(self, code: int) -> str:
        letter = self[code] = comparable(chr(code))
        if len(letter) != 1:
            self._resized.add(chr(code))
        return letter


_FOLDED = _Folding()
