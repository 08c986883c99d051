"""From text to terms, the same for documents and queries; and from a query to what is looked up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import tantivy

from adapters.document import Document, passage

VERSION = "en-stem-2"
"""Part of the index version: changes whenever the same document would give other terms."""
_TITLES = 2
"""Times that a title counts beside its place in the passage: its words say more than those of the text."""

_QUOTED = re.compile(r'"([^"]+)"')
_FRAGMENT = re.compile(r"\b[^\W\d_]\.(?!\s*$)|['’]\w{1,2}\b")
"""An initial, a letter of an abbreviation, what an apostrophe cuts off: ``J. Smith``, ``e.g.``, ``don't``. Rare in an
index like a telling word, and telling nothing."""
LONGEST = 64
"""Characters; a longer token is a hash, a key or a mistake, and nobody types it."""


def analyzer(stop_words: bool = True, stems: bool = True) -> tantivy.TextAnalyzer:
    """Words in lower case without accents, stemmed (Porter 2, English).

    :param stop_words: whether they stay. In the index they do, for phrases need them; a query leaves them out, for
        they cost two thirds of a search and hardly move a ranking.
    :param stems: whether words are stemmed. For an engine that stems by itself they are not: no two stemmers agree.
    """
    builder = (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(LONGEST))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
    )
    if not stop_words:
        builder = builder.filter(tantivy.Filter.stopword("english"))
    if stems:
        builder = builder.filter(tantivy.Filter.stemmer("english"))
    return builder.build()


_ALL = {stems: analyzer(stems=stems) for stems in (True, False)}
_CONTENT = {stems: analyzer(stop_words=False, stems=stems) for stems in (True, False)}

MAX_PHRASES = 16
EXPANSION = 0.5
"""What a word that stands for one of the query's weighs beside it."""
MAX_TERMS = 64
"""Terms looked up at most, the first of a longer query: what a search costs must not grow with it."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a query asks of the keyword index.

    ``words`` count where they stand, a word that is asked twice counts double. ``phrases`` (one term and more, in
    order) count where they stand as they are, and must stand if ``demanded``. ``expansions`` (phrases, too) count for
    :data:`EXPANSION` of what they would count otherwise.
    """

    words: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...] = ()
    demanded: bool = False
    expansions: tuple[tuple[str, ...], ...] = ()


def stems(text: str) -> tuple[str, ...]:
    """The terms of a text, all of them."""
    return tuple(_ALL[True].analyze(text))


def values(document: Document) -> list[str]:
    """What is indexed of a document, piece by piece: no phrase reaches from one into the next."""
    return [document.title] * _TITLES + [passage(document)] if document.title else [passage(document)]


def unquoted(query: str) -> list[str]:
    """What of a query stands outside of double quotes, piece by piece."""
    return _QUOTED.split(query)[::2]


def terms(query: str, stems: bool = True, expansions: Sequence[str] = ()) -> Terms:
    """Read a query, into stems or into whole words.

    :param expansions: what may stand for something in it.

    A query of nothing but text in double quotes demands it, word for word up to stemming. Quotes inside a sentence
    are a quotation: what is quoted counts more where it stands as it is, and is wished for like the rest.
    """
    everything, content = _ALL[stems], _CONTENT[stems]
    texts = _QUOTED.findall(query)[:MAX_PHRASES]
    quoted = [phrase for text in texts if (phrase := tuple(everything.analyze(text)[:MAX_TERMS]))]
    others = tuple(phrase for text in expansions if (phrase := tuple(everything.analyze(text)[:MAX_TERMS])))
    rest = content.analyze(_FRAGMENT.sub(" ", _QUOTED.sub(" ", query) if quoted else query))
    if not quoted:
        # "to be or not to be": where there are only stop words, they are what is asked for.
        return Terms(tuple((rest or everything.analyze(query))[:MAX_TERMS]), expansions=others)
    inside = [term for phrase in quoted for term in phrase]
    return Terms(tuple([*rest, *inside][:MAX_TERMS]), tuple(quoted), demanded=not rest, expansions=others)
