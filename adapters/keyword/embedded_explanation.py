"""Which terms of a query made the score of a document, from Tantivy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import msgspec
import numpy as np
import tantivy
from msgspec.structs import replace

from adapters.keyword import analysis
from adapters.keyword.bm25_explanation import Explained, best_form, summed, term_score
from adapters.keyword.embedded_query import listed_documents, phrase_query, restricted, word_query
from adapters.model.errors import BadResponse
from adapters.model.term_score import TermScore

_decode = msgspec.json.Decoder(Explained).decode

_Found = Mapping[int, TermScore]
"""The score of one term, by the number of the document."""


def term_scores(
    searcher: tantivy.Searcher, parsed: analysis.ParsedQuery, docnos: Sequence[int]
) -> Mapping[int, tuple[TermScore, ...]]:
    """The terms of a query in some documents, by their numbers; documents that have none are left out.

    :raises BadResponse: if Tantivy explains its scores otherwise than this release of it does.
    """
    by_document: dict[int, list[TermScore]] = defaultdict(list)
    try:
        for docno, score in _clauses(searcher, parsed, docnos):
            by_document[docno].append(score)
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadResponse(f"tantivy's explanation of a score is unreadable: {error}") from error
    return {docno: summed(scores) for docno, scores in by_document.items()}


def _clauses(
    searcher: tantivy.Searcher, parsed: analysis.ParsedQuery, docnos: Sequence[int]
) -> Iterator[tuple[int, TermScore]]:
    """What each clause of the query adds to the score of each document: see :class:`analysis.ParsedQuery`."""
    listed = listed_documents(docnos)

    @cache
    def word(term: str) -> _Found:
        return _found(searcher, word_query(term), listed, len(docnos), term, exact=False)

    for term in (*parsed.words, *parsed.forms):
        yield from word(term).items()
    for terms in (*parsed.codes, *parsed.phrases):
        yield from _found(searcher, phrase_query(terms), listed, len(docnos), " ".join(terms), exact=True).items()
    for compound in parsed.compounds:
        forms = [word(each) for each in compound]
        for docno in {docno for form in forms for docno in form}:
            best = best_form(form[docno] for form in forms if docno in form)
            yield docno, replace(best, score=best.score * analysis.COMPOUND_WEIGHT)
    for expansion in parsed.expansions:
        words = [word(each) for each in expansion]
        for docno in set.intersection(*(set(each) for each in words)):
            for each in words:
                yield docno, replace(each[docno], score=each[docno].score * analysis.EXPANSION_WEIGHT)


def _found(
    searcher: tantivy.Searcher, query: tantivy.Query, listed: tantivy.Query, count: int, term: str, *, exact: bool
) -> _Found:
    """The score of a term or phrase in those of the listed documents that have it."""
    hits = searcher.search(restricted(query, listed), count, count=False).hits
    docnos = np.asarray(searcher.fast_field_values("docno", [address for _, address in hits]), np.int64)
    return {
        docno: term_score(term, exact, score, _product(_decode(query.explain(searcher, address).to_json())))
        for docno, (score, address) in zip(docnos.tolist(), hits, strict=True)
    }


def _product(explained: Explained) -> Explained:
    """The product within the explanation of a phrase; that of a word is one."""
    return explained.details[0] if explained.description == "Phrase Scorer" and explained.details else explained
