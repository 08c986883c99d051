"""A text is split at white space into chunks, and a chunk into compounds: words, words joined by signs, signs alone.

The classes of signs follow `Unicode Standard Annex #29 <https://www.unicode.org/reports/tr29/>`_, except that a sign
never ends a word without a trace: ``C++``, ``.NET`` and ``node.js`` are found with their signs and without them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

import regex

from adapters.text.forms import canonical, casefolded

MAX_WORD_CHARS = 512
"""Of a longer word only the beginning counts."""
_SLICE_CHARS = 16_384
"""A longer text is split in slices of this length, so that no call holds the interpreter for long."""
_MAX_JOINED_RUNS, _MAX_JOINED_CHARS = 6, 40
"""More words joined by signs are a path or an address, which is not written as one word."""
_MIN_JOINED_DIGITS = 4
"""``1/2`` is not 12."""
_MAX_PIECES = 4
"""A word that changes more often between letters and digits is a hash, and has no parts."""
_MAX_SIGNS = 16
_MAX_CACHED_CHARS, _MAX_CACHED = 48, 16_384
_ENDS_CLAUSE = ".,;:!?"
_MAX_CAMEL_CHARS = 64

_SCRIPTS = (
    r"\p{scx=Hani}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Bopo}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}"
)
_UNSPACED = rf"[[{_SCRIPTS}]&&[\p{{L}}\p{{M}}]]"
"""Letters of scripts that write no spaces between words, or not between a word and its particles (Korean)."""
_ITEM = regex.compile(
    rf"(?P<unspaced>{_UNSPACED}+)|(?P<run>[\p{{L}}\p{{M}}\p{{N}}--{_UNSPACED}]+)|(?P<sign>[\p{{P}}\p{{S}}]+)", regex.V1
)
is_unspaced = regex.compile(_UNSPACED, regex.V1).match
"""Whether a text begins with a letter of such a script."""
is_signed_name = regex.compile(r"\.?[\p{L}\p{N}]+[+#]*").fullmatch
"""Whether signs may make a word another name: ``C++``, ``C#``, ``.NET``."""
_CLUSTER = regex.compile(r"\X")
_PIECE = regex.compile(r"\p{N}+|[^\p{N}]+")
_CAMEL = regex.compile(r"\p{Lu}{2,}s(?![\p{L}])|\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|\p{N}+")
_HAS_DIGIT = regex.compile(r"\d").search
_SYMBOL = regex.compile(r"[[\p{So}\p{Sc}\p{Sm}§¶†‡]--[+<=>|~]]", regex.V1)
_JOINER = frozenset("-._'/&*")
_NUMBER_JOINER = frozenset(",:")
_LEAD, _TRAIL = ".#$@%+-/\\_€£¥", "+#*%_="
_PAIR = regex.compile(r"[^\p{Ps}\p{Pe}\p{Pi}\p{Pf}\",;!?<>]{1,3}")
"""The signs between two words that are a part of how they are written: not brackets, quotes, or the end of a clause."""


@dataclass(frozen=True, slots=True)
class Run:
    """Letters and digits without a sign between them.

    :param word: case-folded.
    :param pieces: the same, split between letters and digits; for a script without spaces, its characters.
    :param camel: the words in it by their capitals (``parse``, ``json``, ``body``); empty if it is one.
    """

    word: str
    pieces: tuple[str, ...]
    camel: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compound:
    """Runs that are joined by signs, or signs alone.

    :param written: with its signs, case-folded: ``node.js``; empty if it is one run, or too long.
    :param pairs: each two neighbouring runs, with the sign between them.
    :param outer: a run with signs before or after it: ``c++``; with another compound before it: ``c++17``; signs alone.
    :param signed: one run with the signs before and after it: ``c++``, ``.net``; empty if there are none.
    :param joined: written without its signs: ``nodejs``; empty if it is one run, or too long.
    :param is_unspaced: whether its script has no spaces: its pieces are characters.
    :param bigrams: then, each two neighbouring characters.
    """

    runs: tuple[Run, ...]
    written: str = ""
    pairs: tuple[str, ...] = ()
    outer: tuple[str, ...] = ()
    signed: str = ""
    joined: str = ""
    is_unspaced: bool = False
    bigrams: tuple[str, ...] = ()

    @property
    def is_code(self) -> bool:
        """Whether it is a number or an identifier, in which the order of the parts counts: ``12-34-56``, ``WX-770-B``.

        Parts that all have digits, or three parts with a number and without a word of more than four letters.
        """
        if len(self.runs) < 2:
            return False
        words = [run.word for run in self.runs]
        numbers = sum(_HAS_DIGIT(word) is not None for word in words)
        if numbers == len(words):
            return True
        return bool(numbers) and len(words) > 2 and all(len(each) < 5 or _HAS_DIGIT(each) for each in words)

    @property
    def pieces(self) -> tuple[str, ...]:
        """The pieces of all runs, in order; one with its signs, if it is a name with signs (``c++``)."""
        if self.signed and is_signed_name(self.signed):
            return (self.signed,)
        return tuple(piece for run in self.runs for piece in run.pieces)


def chunks(text: str) -> Iterator[str]:
    """The parts of a text between white space, in order."""
    if len(text) <= _SLICE_CHARS:
        yield from text.split()
        return
    start = 0
    while start < len(text):
        part = text[start : start + _SLICE_CHARS]
        if start + len(part) < len(text) and (cut := max(part.rfind(" "), part.rfind("\n"))) > 0:
            part = part[:cut]
        yield from part.split()
        start += len(part)


class _Item(NamedTuple):
    """The longest part of a chunk that is of one kind: ``run``, ``unspaced`` or ``sign``."""

    kind: str
    text: str


_NOTHING = _Item("", "")


T = TypeVar("T")


class CachedByChunk(Generic[T]):
    """A function of a chunk, whose results for short chunks are kept: most words of a text have been seen before.

    :param size: number of results that are kept.
    """

    def __init__(self, read: Callable[..., T], size: int = _MAX_CACHED) -> None:
        self._read = read
        self._cached = lru_cache(maxsize=size)(read)

    def __call__(self, chunk: str, *arguments: Hashable) -> T:
        """The result of the function."""
        return (self._cached if len(chunk) <= _MAX_CACHED_CHARS else self._read)(chunk, *arguments)

    def each(self, chunks: Iterable[str], *arguments: Hashable) -> list[T]:
        """The results for many chunks, without a call of this object for each."""
        cached, read = self._cached, self._read
        return [(cached if len(chunk) <= _MAX_CACHED_CHARS else read)(chunk, *arguments) for chunk in chunks]

    def __len__(self) -> int:
        """Number of results that are kept."""
        return self._cached.cache_info().currsize


MANY_CHUNKS = 65_536
"""Results that are kept of what is needed for every text: a corpus of 20,000 passages has 40,000 distinct chunks."""


@CachedByChunk
def compounds(chunk: str) -> Sequence[Compound]:
    """The compounds of a chunk, in order."""
    return tuple(_read(chunk))


def _read(chunk: str) -> Iterator[Compound]:
    plain = chunk.rstrip(_ENDS_CLAUSE)
    if plain.isascii() and plain.isalpha() and (plain[1:].islower() or plain.isupper()):  # most are
        word = plain.lower()
        yield Compound((Run(word, (word,)),))
        return
    items = [_Item(str(found.lastgroup), found.group()) for found in _ITEM.finditer(canonical(chunk))]
    if len(items) == 1 and items[0].kind == "sign" and not _SYMBOL.search(items[0].text):
        yield Compound((), outer=(items[0].text[:_MAX_SIGNS],))
        return
    at = 0
    while at < len(items):
        end = at + 1
        if items[at].kind == "run":
            while items[end + 1 : end + 2] and _joins(*items[end - 1 : end + 2]):
                end += 2
            around = (items[at - 2] if at > 1 else _NOTHING, items[at - 1] if at else _NOTHING, *items[end : end + 2])
            yield _compound(items[at:end], *around)
        elif items[at].kind == "unspaced":
            yield _unspaced(items[at].text)
        else:
            for symbol in dict.fromkeys(_SYMBOL.findall(items[at].text)):
                yield Compound((), outer=(symbol,))
        at = end


def _joins(before: _Item, sign: _Item, after: _Item) -> bool:
    """Whether a sign joins two runs to a compound."""
    if before.kind != after.kind or sign.kind != "sign":
        return False
    return sign.text in _JOINER or (
        sign.text in _NUMBER_JOINER and _HAS_DIGIT(before.text) is not None and _HAS_DIGIT(after.text) is not None
    )


def _compound(items: Sequence[_Item], earlier: _Item, before: _Item, *after: _Item) -> Compound:
    """The compound of runs with a sign between each two.

    :param earlier: the item before ``before``.
    :param after: the next items, at most two.
    """
    texts = [item.text[:MAX_WORD_CHARS] for item in items[::2]]
    signs = [item.text for item in items[1::2]]
    if signs and signs[-1] == "'" and texts[-1] in {"s", "S"}:  # a possessive
        del texts[-1], signs[-1]
    runs = tuple(map(_run, texts))
    words = [run.word for run in runs]
    pairs = tuple(f"{first}{sign}{second}" for (first, second), sign in zip(pairwise(words), signs, strict=True))
    outer = []
    lead, trail = _signs_around(earlier, before, *after)
    if earlier.kind == "run" and before.kind == "sign" and _PAIR.fullmatch(before.text):
        outer.append(f"{casefolded(earlier.text[:MAX_WORD_CHARS])}{before.text}{words[0]}")
    signed = f"{lead}{words[0]}{trail}" if len(words) == 1 and (lead or trail) else ""
    if signed:
        outer.append(signed)
    else:
        outer += [f"{lead}{words[0]}"] * bool(lead) + [f"{words[-1]}{trail}"] * bool(trail)
    if not 1 < len(words) <= _MAX_JOINED_RUNS or sum(map(len, words)) > _MAX_JOINED_CHARS:
        return Compound(runs, "", pairs, tuple(outer), signed)
    joined = "".join(words)
    if joined.isdigit() and len(joined) < _MIN_JOINED_DIGITS:
        joined = ""
    written = words[0] + "".join(f"{sign}{word}" for sign, word in zip(signs, words[1:], strict=True))
    return Compound(runs, written, pairs, tuple(outer), signed, joined)


def _signs_around(earlier: _Item, before: _Item, after: _Item = _NOTHING, later: _Item = _NOTHING) -> tuple[str, str]:
    """The signs before and after a compound that are a part of how it is written, such as those of ``.NET`` and ``C#``.

    Not those between it and another word, except ``++`` in ``C++17``; and no emphasis of a markup, as in ``*word*``.
    """
    lead = before.text[len(before.text.rstrip(_LEAD)) :] if not earlier.kind and before.kind == "sign" else ""
    trail = after.text[: len(after.text) - len(after.text.lstrip(_TRAIL))] if after.kind == "sign" else ""
    if len(lead) > 1 and not lead.strip("."):
        lead = ""
    if later.kind and trail != "#" and len(trail) < 2:
        trail = ""
    is_emphasis = before.text and after.text and before.text[-1] == after.text[0] and lead != "__"
    return ("", "") if is_emphasis else (lead, trail)


def _run(text: str) -> Run:
    word = casefolded(text)
    if text.isalpha() and (text.islower() or text.isupper() or text[1:].islower()):
        return Run(word, (word,))
    pieces = tuple(_PIECE.findall(word))
    parts = _CAMEL.findall(text) if len(text) <= _MAX_CAMEL_CHARS else []
    camel = tuple(map(casefolded, parts)) if 1 < len(parts) <= 2 * _MAX_PIECES else ()
    return Run(word, pieces if len(pieces) <= _MAX_PIECES else (word,), camel)


def _unspaced(text: str) -> Compound:
    clusters = tuple(casefolded(each) for each in _CLUSTER.findall(text))
    bigrams = tuple(first + second for first, second in pairwise(clusters))
    return Compound((Run(casefolded(text)[:MAX_WORD_CHARS], clusters),), is_unspaced=True, bigrams=bigrams)
