"""Text to terms, the same way for documents and for queries; and the parsing of queries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import tantivy

from adapters.model.document import Document, passage

FORMAT = "en-stem-5"
"""Part of the build id: it changes whenever the same document would have other terms."""
_TITLE_REPEATS = 2
"""Number of times that a title is indexed beside the passage, which begins with it: words of a title weigh more."""

_QUOTED = re.compile(r'"([^"]+)"')
_FRAGMENT = re.compile(r"\b[^\W\d_]\.(?!\s*$)|['’]\w{1,2}\b")
"""An initial, a letter of an abbreviation, a letter or two after an apostrophe: ``J. Smith``, ``e.g.``, ``don't``. As
terms they are as rare as informative words, and carry no information."""
MAX_TOKEN_CHARS = 64
"""Maximum length of a token: a longer one is a hash, a key or a mistake, and is never searched."""
MAX_PHRASES = 16
"""Maximum number of quoted phrases of a query; later ones are ignored."""
MAX_TERMS = 64
"""Maximum number of terms of a query or phrase; later ones are ignored. It bounds the cost of a search."""
EXPANSION_WEIGHT = 0.5
"""The weight of an expansion; that of a word of the query is 1."""


def analyzer(stop_words: bool = True, stems: bool = True) -> tantivy.TextAnalyzer:
    """Words in lower case without accents, stemmed (Porter 2, English).

    :param stop_words: whether stop words are terms. In the index they are, because phrases need them; in queries they
        are not, because they cost two thirds of a search and hardly change a ranking.
    :param stems: whether words are stemmed. ``False`` for an engine that stems by itself: no two stemmers agree.
    """
    builder = (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(MAX_TOKEN_CHARS))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
    )
    if not stop_words:
        builder = builder.filter(tantivy.Filter.stopword("english"))
    if stems:
        builder = builder.filter(tantivy.Filter.stemmer("english"))
    return builder.build()


_ALL_WORDS = {stems: analyzer(stems=stems) for stems in (True, False)}
_CONTENT_WORDS = {stems: analyzer(stop_words=False, stems=stems) for stems in (True, False)}


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query of the keyword index.

    :param words: each adds to the score of the documents that contain it; a word that occurs twice adds twice.
    :param phrases: of one term or more, in order. Each adds to the score of the documents that contain it.
    :param phrases_required: whether a document must contain all phrases.
    :param expansions: phrases that add to the score with the weight :data:`EXPANSION_WEIGHT`.
    """

    words: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...] = ()
    phrases_required: bool = False
    expansions: tuple[tuple[str, ...], ...] = ()


def stemmed_words(text: str) -> tuple[str, ...]:
    """All words of a text, stemmed, in order; stop words included."""
    return tuple(_ALL_WORDS[True].analyze(text))


def content_words(query: str) -> list[tuple[str, str]]:
    """The distinct words of a query that are searched, each with its stem; without stop words, unless it has no others.

    A word has no accents and no capitals.
    """
    analyzers = _CONTENT_WORDS if _CONTENT_WORDS[True].analyze(query) else _ALL_WORDS
    words, stems = (analyzers[stems].analyze(query)[:MAX_TERMS] for stems in (False, True))
    return list(dict.fromkeys(zip(words, stems, strict=True)))


def folded(letter: str) -> str:
    """A letter as it is in words: in lower case and without its accent, ``ss`` for ``ß``; other signs as they are."""
    return next(iter(_ALL_WORDS[False].analyze(letter)), letter)


def indexed_texts(document: Document) -> list[str]:
    """The texts of a document that are indexed. They are separate, so that no phrase matches across two of them."""
    repeats = [document.title] * _TITLE_REPEATS if document.title else []
    names = (document.tags, document.keywords, document.local_keywords, document.query_expansion_keywords)
    summaries = (document.summary, document.local_summary)
    more = dict.fromkeys(each for each in (*(name for each in names for name in each), *summaries) if each)
    return [*repeats, passage(document), *more]


def unquoted(query: str) -> list[str]:
    """The texts of a query between its quoted phrases, in order."""
    return _QUOTED.split(query)[::2]


def parse_query(query: str, stems: bool = True, expansions: Sequence[str] = ()) -> ParsedQuery:
    """Parse a query.

    A query that is only text in double quotes requires its phrases, word for word up to stemming. Quotes inside a
    sentence are a quotation: the phrase adds to the score of the documents that contain it, and is not required.

    :param stems: whether the terms are stems; else they are whole words.
    :param expansions: synonyms of words and phrases of the query.
    """
    all_words, content_words = _ALL_WORDS[stems], _CONTENT_WORDS[stems]
    texts = _QUOTED.findall(query)[:MAX_PHRASES]
    phrases = [phrase for text in texts if (phrase := tuple(all_words.analyze(text)[:MAX_TERMS]))]
    expanded = tuple(phrase for text in expansions if (phrase := tuple(all_words.analyze(text)[:MAX_TERMS])))
    rest = content_words.analyze(_FRAGMENT.sub(" ", _QUOTED.sub(" ", query) if phrases else query))
    if not phrases:
        # "to be or not to be": a query of stop words only is searched by them.
        return ParsedQuery(tuple((rest or all_words.analyze(query))[:MAX_TERMS]), expansions=expanded)
    in_phrases = [term for phrase in phrases for term in phrase]
    words = tuple([*rest, *in_phrases][:MAX_TERMS])
    return ParsedQuery(words, tuple(phrases), phrases_required=not rest, expansions=expanded)
