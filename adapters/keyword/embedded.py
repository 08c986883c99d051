"""Keywords in this process: BM25 by tantivy.

Robertson, Zaragoza: "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; k1 = 1.2, b = 0.75.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import tantivy

from adapters.engine.index import EmbeddedIndex, pinned_view
from adapters.engine.segment_set import Mask, SegmentSet
from adapters.keyword import analysis
from adapters.keyword.component import SCHEMA, KeywordComponent
from adapters.model.document import Scope
from adapters.model.filter import Filter, clearance_of
from adapters.model.index_terms import filter_compiler, max_terms
from adapters.model.sources import KEYWORD
from adapters.ports.retriever import SourceQuery
from fusion.columns import Ranking
from fusion.largest import top

_MUST, _SHOULD, _MUST_NOT = tantivy.Occur.Must, tantivy.Occur.Should, tantivy.Occur.MustNot
_MAX_SINGLE_TERMS = 16
"""Up to this number, looking terms up one by one is cheaper than as a set."""
_MAX_SEARCHED = 20_000
"""Maximum number of hits of a search without its filter, which are tested afterwards: each is a Python object."""
_MAX_FILTER_TERMS = 1_000
"""Maximum number of terms of a filter in a query; a larger filter is tested on the hits instead."""

_Found: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Positions, and the score of each."""


class EmbeddedKeyword:
    """The keyword source of an embedded index with a :class:`KeywordComponent`."""

    def __init__(self, index: EmbeddedIndex, component: KeywordComponent) -> None:
        self._index = index
        self._component = component

    async def search(self, query: SourceQuery) -> Ranking:
        """See :class:`adapters.ports.Retriever`."""
        return self.search_now(query)

    def search_now(self, query: SourceQuery) -> Ranking:
        """The best documents by BM25, which is the score (0 and up). Ties by age, the oldest first."""
        view = pinned_view(self._index, query)
        segments = view.segments
        mask = segments.mask(query.filter)
        if not mask.count:
            return Ranking.empty(KEYWORD.name)
        index = view.component(self._component).of(query.scope, clearance_of(query.access))
        if index is None:
            return Ranking.empty(KEYWORD.name)
        parsed = _parsed(query.scope, query.text, query.expansions, index.languages)
        if parsed.is_empty:
            return Ranking.empty(KEYWORD.name)
        searcher = index.searcher
        if max_terms(query.filter) > _MAX_FILTER_TERMS:
            positions, scores = _search_with_mask(searcher, parsed, query.depth, mask, segments)
        else:
            # The index contains living documents only, so a filter that passes all of them is left out.
            condition = None if mask.count == searcher.num_docs else query.filter
            positions, scores = _search(searcher, _query(parsed, condition), query.depth, segments)
        best = top(scores, positions, query.depth)
        return Ranking.of_docs(KEYWORD.name, positions.take(best), scores.take(best), segments)


@lru_cache(maxsize=16)
def _parsed(scope: Scope, text: str, expansions: tuple[str, ...], languages: tuple[str, ...]) -> analysis.ParsedQuery:
    """Parse a query once for all collections of a request.

    :param scope: a part of the cache key, so that the time does not reveal what other tenants searched for.
    """
    del scope
    return analysis.parse_query(text, expansions, languages)


def _search(searcher: tantivy.Searcher, query: tantivy.Query, depth: int, segments: SegmentSet) -> _Found:
    """The best documents."""
    hits = searcher.search(query, depth, count=False).hits
    docnos = np.asarray(searcher.fast_field_values("docno", [address for _, address in hits]), np.int64)
    return segments.positions(docnos), np.array([score for score, _ in hits], np.float64)


def _search_with_mask(
    searcher: tantivy.Searcher, parsed: analysis.ParsedQuery, depth: int, mask: Mask, segments: SegmentSet
) -> _Found:
    """The best documents that a mask passes.

    A filter of thousands of terms takes hundreds of milliseconds as a query of Tantivy, and few as a mask. So the
    query is searched without it, for twice as many documents as are expected to be needed. If these are too many, or
    too few of them pass, the documents that pass are listed in the query.
    """
    text = _query(parsed, None)
    searched = 2 * depth * int(searcher.num_docs) // mask.count
    if searched <= _MAX_SEARCHED:
        positions, scores = _search(searcher, text, searched, segments)
        passing = mask.flags[positions]
        if passing.sum() >= depth or len(positions) < searched:
            return positions[passing], scores[passing]
    listed = tantivy.Query.term_set_query(SCHEMA, "docno", segments.docnos[mask.flags].tolist())
    return _search(searcher, _restricted(text, listed), depth, segments)


def _query(parsed: analysis.ParsedQuery, condition: Filter | None) -> tantivy.Query:
    """A query without parsed syntax: user text is only the value of a term."""
    # A word that occurs twice is two clauses: a boosted one makes tantivy's union of words a tenth slower.
    clauses = [(_SHOULD, _word(word)) for word in parsed.words]
    clauses += [(_SHOULD, _best_of(compound)) for compound in parsed.compounds]
    clauses += [(_SHOULD, _phrase(code)) for code in parsed.codes]
    occur = _MUST if parsed.is_required else _SHOULD
    clauses += [(occur, _phrase(phrase)) for phrase in parsed.phrases]
    clauses += [(occur, _word(form)) for form in parsed.forms]
    clauses += [(_SHOULD, _expansion(words)) for words in parsed.expansions]
    text = tantivy.Query.boolean_query(clauses)
    if condition is None:
        return text
    return _restricted(text, _compile(condition))


def _restricted(text: tantivy.Query, allowed: tantivy.Query) -> tantivy.Query:
    """Documents that match both; only the text has a score."""
    return tantivy.Query.boolean_query([(_MUST, text), (_MUST, tantivy.Query.const_score_query(allowed, 0.0))])


def _word(word: str) -> tantivy.Query:
    return tantivy.Query.term_query(SCHEMA, "words", word, "freq")


def _best_of(terms: Sequence[str]) -> tantivy.Query:
    best = tantivy.Query.disjunction_max_query([_word(term) for term in terms])
    return tantivy.Query.boost_query(best, analysis.COMPOUND_WEIGHT)


def _phrase(terms: Sequence[str]) -> tantivy.Query:
    if len(terms) == 1:
        return tantivy.Query.term_query(SCHEMA, "exact", terms[0], "freq")
    return tantivy.Query.phrase_query(SCHEMA, "exact", list(terms))


def _expansion(words: Sequence[str]) -> tantivy.Query:
    all_words = tantivy.Query.boolean_query([(_MUST, _word(word)) for word in words])
    return tantivy.Query.boost_query(all_words if len(words) > 1 else _word(words[0]), analysis.EXPANSION_WEIGHT)


class _TermQueries:
    """Filters as queries over the field of filter terms; their score means nothing."""

    def any_term(self, terms: Sequence[str]) -> tantivy.Query:
        if len(terms) > _MAX_SINGLE_TERMS:
            return tantivy.Query.term_set_query(SCHEMA, "filter_terms", terms)
        return self.any_of([tantivy.Query.term_query(SCHEMA, "filter_terms", term, "basic") for term in terms])

    def all_of(self, queries: Sequence[tantivy.Query]) -> tantivy.Query:
        if not queries:
            return tantivy.Query.all_query()
        return tantivy.Query.boolean_query([(_MUST, query) for query in queries])

    def any_of(self, queries: Sequence[tantivy.Query]) -> tantivy.Query:
        return tantivy.Query.boolean_query([(_SHOULD, query) for query in queries])

    def negate(self, query: tantivy.Query) -> tantivy.Query:
        return tantivy.Query.boolean_query([(_MUST, tantivy.Query.all_query()), (_MUST_NOT, query)])


_compile = filter_compiler(_TermQueries())
