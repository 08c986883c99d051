"""Queries of the embedded keyword index. Nothing is parsed here: user text is only the value of a term."""

from __future__ import annotations

from collections.abc import Sequence

import tantivy

from adapters.keyword import analysis
from adapters.keyword.component import SCHEMA
from adapters.model.filter import Filter
from adapters.model.index_terms import filter_compiler

_MUST, _SHOULD, _MUST_NOT = tantivy.Occur.Must, tantivy.Occur.Should, tantivy.Occur.MustNot
_MAX_SINGLE_TERMS = 16
"""Up to this number, looking terms up one by one is cheaper than as a set."""


def text_query(parsed: analysis.ParsedQuery, condition: Filter | None) -> tantivy.Query:
    """The documents that match a query and pass a filter in normal form."""
    # A word that occurs twice is two clauses: a boosted one makes tantivy's union of words a tenth slower.
    clauses = [(_SHOULD, word_query(word)) for word in parsed.words]
    clauses += [(_SHOULD, _best_of(compound)) for compound in parsed.compounds]
    clauses += [(_SHOULD, phrase_query(code)) for code in parsed.codes]
    occur = _MUST if parsed.is_required else _SHOULD
    clauses += [(occur, phrase_query(phrase)) for phrase in parsed.phrases]
    clauses += [(occur, word_query(form)) for form in parsed.forms]
    clauses += [(_SHOULD, _expansion(words)) for words in parsed.expansions]
    text = tantivy.Query.boolean_query(clauses)
    if condition is None:
        return text
    return restricted(text, _compile(condition))


def restricted(text: tantivy.Query, allowed: tantivy.Query) -> tantivy.Query:
    """Documents that match both; only the text has a score."""
    return tantivy.Query.boolean_query([(_MUST, text), (_MUST, tantivy.Query.const_score_query(allowed, 0.0))])


def word_query(word: str) -> tantivy.Query:
    """Documents that have a term of ``words``."""
    return tantivy.Query.term_query(SCHEMA, "words", word, "freq")


def _best_of(terms: Sequence[str]) -> tantivy.Query:
    best = tantivy.Query.disjunction_max_query([word_query(term) for term in terms])
    return tantivy.Query.boost_query(best, analysis.COMPOUND_WEIGHT)


def phrase_query(terms: Sequence[str]) -> tantivy.Query:
    """Documents that have terms of ``exact`` in this order."""
    if len(terms) == 1:
        return tantivy.Query.term_query(SCHEMA, "exact", terms[0], "freq")
    return tantivy.Query.phrase_query(SCHEMA, "exact", list(terms))


def _expansion(words: Sequence[str]) -> tantivy.Query:
    all_words = tantivy.Query.boolean_query([(_MUST, word_query(word)) for word in words])
    return tantivy.Query.boost_query(all_words if len(words) > 1 else word_query(words[0]), analysis.EXPANSION_WEIGHT)


def listed_documents(docnos: Sequence[int]) -> tantivy.Query:
    """The documents of these numbers."""
    return tantivy.Query.term_set_query(SCHEMA, "docno", list(docnos))


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
