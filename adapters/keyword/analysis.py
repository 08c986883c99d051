"""The terms of documents and queries, the same for both keyword engines, which split them at spaces and change nothing.

An index has two fields. ``words`` has what a search ranks by: stems of words, and of their parts; words with signs as
they are written; pairs of characters in scripts without spaces. ``exact`` has the words of each text in order, without
stemming and folding, for quoted text and for codes, in which the order of the parts counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from adapters.model.document import Document, passage
from adapters.text.folding import folded
from adapters.text.forms import canonical, casefolded
from adapters.text.languages import ENGLISH, is_stop_word, language_of, language_of_query, stem
from adapters.text.quotes import quoted, unquoted
from adapters.text.segmentation import MANY_CHUNKS, CachedByChunk, Compound, Run, chunks, compounds

FORMAT = "words-1"
"""Part of the build id: it changes whenever the same document would have other terms."""
_TITLE_REPEATS = 2
"""Number of times that a title is indexed beside the passage, which begins with it: words of a title weigh more."""

_ABBREVIATIONS = frozenset({"e.g", "i.e"})
_MAX_FRAGMENT = 2
"""A letter or two after an apostrophe are as rare as an informative word, and carry no information; as do initials."""
MAX_PHRASES = 16
"""Maximum number of quoted phrases of a query, and of codes; later ones are ignored."""
MAX_TERMS = 64
"""Maximum number of terms of a query or phrase; later ones are ignored. It bounds the cost of a search."""
EXPANSION_WEIGHT = 0.5
"""The weight of an expansion; that of a word of the query is 1."""
COMPOUND_WEIGHT = 0.5
"""The weight of a compound as a whole, beside its words: ``zero-one`` counts as two words and a half."""


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query of the keyword index.

    :param words: terms of ``words``. Each adds to the score of the documents that have it, as often as it is here.
    :param compounds: terms of ``words``: each as it is written, and in one word. The best of them adds to the score,
        with the weight :data:`COMPOUND_WEIGHT`.
    :param codes: of terms of ``exact``, in order. Each adds to the score of the documents that have it.
    :param phrases: quoted text, as ``codes``.
    :param forms: words with signs in quoted text, as ``words``.
    :param is_required: whether a document must have all phrases and forms.
    :param expansions: each of one word or more, as ``words``; it adds to the score of the documents that have all of
        them, with the weight :data:`EXPANSION_WEIGHT`.
    """

    words: tuple[str, ...] = ()
    compounds: tuple[tuple[str, ...], ...] = ()
    codes: tuple[tuple[str, ...], ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    forms: tuple[str, ...] = ()
    is_required: bool = False
    expansions: tuple[tuple[str, ...], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it finds nothing."""
        return not (self.words or self.compounds or self.codes or self.phrases or self.forms)


@dataclass(frozen=True, slots=True)
class DocumentTerms:
    """The terms of a document, separated by spaces: one text for each of its texts."""

    words: list[str]
    exact: list[str]


def document_terms(document: Document) -> DocumentTerms:
    """The terms of both fields. Texts are separate, so that no phrase matches across two of them."""
    language = language_of(document.language)
    texts = indexed_texts(document)
    terms = [_text_terms(text, language) for text in texts]
    title = [_text_terms(document.title, language)[0]] * _TITLE_REPEATS if document.title else []
    return DocumentTerms([*title, *(words for words, _ in terms)], [exact for _, exact in terms])


def indexed_texts(document: Document) -> list[str]:
    """The distinct texts of a document that are indexed."""
    names = (document.tags, document.keywords, document.local_keywords, document.query_expansion_keywords)
    more = (*(name for each in names for name in each), document.summary, document.local_summary)
    return [passage(document), *dict.fromkeys(each for each in more if each)]


def _text_terms(text: str, language: str) -> tuple[str, str]:
    of_chunks = _chunk_terms.each(chunks(text), language)
    return " ".join([words for words, _ in of_chunks if words]), " ".join([exact for _, exact in of_chunks if exact])


@partial(CachedByChunk, size=MANY_CHUNKS)
def _chunk_terms(chunk: str, language: str) -> tuple[str, str]:
    """The terms of a chunk in both fields, separated by spaces."""
    words: list[str] = []
    exact: list[str] = []
    for each in compounds(chunk):
        exact += each.pieces
        if each.is_unspaced:
            words += each.bigrams or each.pieces
            continue
        words += (stem(word, language) for run in each.runs for word in (run.word, *_parts(run)))
        words += dict.fromkeys((*each.pairs, *filter(None, [each.written]), *each.outer))
        if each.joined:
            words.append(stem(each.joined, language))
    return " ".join(words), " ".join(exact)


def _parts(run: Run) -> list[str]:
    """The parts of a run that are words, too."""
    return [each for each in dict.fromkeys((*run.pieces, *run.camel)) if len(each) > 1 and each != run.word]


def stemmed_words(text: str) -> tuple[str, ...]:
    """All words of a text as terms, in order; stop words included. A sign alone is a word."""
    return tuple(term for chunk in chunks(text) for each in compounds(chunk) for term in _all_terms(each))


def _all_terms(compound: Compound) -> Sequence[str]:
    if compound.is_unspaced:
        return compound.bigrams or compound.pieces
    return [stem(run.word, ENGLISH) for run in compound.runs] or compound.outer


def content_words(query: str) -> list[tuple[str, str]]:
    """The distinct words of a query that are searched, each with its stem; without stop words, unless it has no others.

    A word has no accents and no capitals.
    """
    found = [each for chunk in chunks(query) for each in compounds(chunk)]
    runs = [run for each in found if not each.is_unspaced for run in each.runs]
    content = [run for run in runs if not is_stop_word(run.word)] or runs
    words = [(folded(word), stem(word, ENGLISH)) for run in content for word in (run.word, *_parts(run))]
    words += [(term, term) for each in found if each.is_unspaced for term in each.bigrams or each.pieces]
    return list(dict.fromkeys(words))[:MAX_TERMS]


def comparable(letter: str) -> str:
    """A letter as it is in words: in lower case and without its accent, ``ss`` for ``ß``; other signs as they are."""
    return folded(casefolded(canonical(letter)))


def parse_query(query: str, expansions: Sequence[str] = (), languages: tuple[str, ...] = (ENGLISH,)) -> ParsedQuery:
    """Parse a query.

    Quoted text beside other words is required, word for word. In a sentence, which has stop words, it is a quotation:
    it adds to the score of the documents that contain it, and is not required.

    :param expansions: synonyms of words and phrases of the query.
    :param languages: of the documents. Each word is searched by its stem in each of them.
    """
    texts = quoted(query)[:MAX_PHRASES]
    rest = list(chunks(" ".join(unquoted(query)) if texts else query))
    language = ENGLISH if len(languages) == 1 else language_of_query(_words(rest), languages)
    initials = {each for each in rest[:-1] if len(each) == 2 and each[1] == "." and each[0].isalpha()}
    terms = _terms([each for each in rest if each not in initials], languages, language)
    quotations = [list(chunks(text)) for text in texts]
    for quotation in quotations:
        terms += _terms(quotation, languages, None)
    terms = terms or _terms(rest, languages, None)
    phrases = [[each for chunk in quotation for each in compounds(chunk)] for quotation in quotations]
    in_expansions = (stemmed_words(each)[:MAX_TERMS] for each in expansions)
    return ParsedQuery(
        tuple([word for each in terms for word in each.words][:MAX_TERMS]),
        tuple([compound for each in terms for compound in each.compounds][:MAX_PHRASES]),
        tuple([code for each in terms for code in each.codes][:MAX_PHRASES]),
        tuple(pieces for each in phrases if (pieces := _pieces(each))),
        tuple([form for phrase in phrases for each in phrase for form in (*each.pairs, *each.outer)][:MAX_TERMS]),
        bool(texts) and not any(is_stop_word(word, language) for word in _words(rest)),
        tuple(each for each in in_expansions if each),
    )


class _Terms(NamedTuple):
    """What a chunk of a query searches: see :class:`ParsedQuery`."""

    words: tuple[str, ...] = ()
    compounds: tuple[tuple[str, ...], ...] = ()
    codes: tuple[tuple[str, ...], ...] = ()


_NO_TERMS = _Terms()


def _terms(of_chunks: Iterable[str], languages: tuple[str, ...], stop_words: str | None) -> list[_Terms]:
    """The terms of the chunks that have any: see :func:`_chunk_query`."""
    found = (_chunk_query(each, languages, stop_words) for each in of_chunks)
    return [each for each in found if each != _NO_TERMS]


@CachedByChunk
def _chunk_query(chunk: str, languages: tuple[str, ...], stop_words: str | None) -> _Terms:
    """What a chunk of a query searches.

    :param stop_words: the language whose stop words are left out, and fragments of words, too; ``None`` to search all.
    """
    words: list[str] = []
    wholes: list[tuple[str, ...]] = []
    codes: list[tuple[str, ...]] = []
    found = compounds(chunk)
    for each in [each for each in found if each.runs] or found:  # a sign at a word is not searched by itself
        if each.is_unspaced:
            words += each.bigrams
            codes += [each.pieces] * (not each.bigrams)
            continue
        if stop_words and _says_nothing(each):
            continue
        runs = () if each.is_code else tuple(_content_runs(each, stop_words)) if stop_words else each.runs
        codes += [each.pieces] * each.is_code + [run.pieces for run in runs if len(run.pieces) > 1]
        for run in runs:
            parts = () if len(run.pieces) > 1 else _parts(run)
            words += [term for word in (run.word, *parts) for term in _stems(word, languages)]
        words += each.outer
        if not each.is_code:
            words += [pair for pair in each.pairs if pair != each.written]
        joined = tuple(_stems(each.joined, languages))
        if not runs and not each.is_code:  # an abbreviation
            words += joined
        elif joined and each.is_code:
            wholes.append(joined)
        if each.written:
            wholes.append((each.written, *joined) if runs else (each.written,))
    return _Terms(tuple(words), tuple(wholes), tuple(codes))


def _says_nothing(compound: Compound) -> bool:
    """Whether it is ``e.g.``, or a contraction of fragments: ``I'm``."""
    return compound.written in _ABBREVIATIONS or (
        "'" in compound.written and all(len(run.word) == 1 for run in compound.runs)
    )


def _content_runs(compound: Compound, stop_words: str) -> Iterator[Run]:
    """The runs of a compound that carry information."""
    for number, run in enumerate(compound.runs):
        after_apostrophe = number and "'" in compound.pairs[number - 1]
        is_fragment = len(compound.runs) > 1 and len(run.word) <= (_MAX_FRAGMENT if after_apostrophe else 1)
        if not is_fragment and not is_stop_word(run.word, stop_words):
            yield run


def _stems(word: str, languages: tuple[str, ...]) -> Iterable[str]:
    """The distinct stems of a word; none of no word."""
    return dict.fromkeys(stem(word, each) for each in languages) if word else ()


def _words(of_chunks: Iterable[str]) -> list[str]:
    return [run.word for chunk in of_chunks for each in compounds(chunk) for run in each.runs]


def _pieces(phrase: Sequence[Compound]) -> tuple[str, ...]:
    return tuple(piece for each in phrase for piece in each.pieces)[:MAX_TERMS]
