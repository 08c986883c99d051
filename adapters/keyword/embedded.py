"""Keywords in this process: BM25 by tantivy.

Robertson, Zaragoza: "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; k1 = 1.2, b = 0.75.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import anyio.to_thread
import numpy as np
import numpy.typing as npt
import tantivy

from adapters.engine.index import EmbeddedIndex, pinned_view
from adapters.engine.segment_set import Mask, SegmentSet
from adapters.keyword import analysis
from adapters.keyword.component import KeywordComponent
from adapters.keyword.embedded_explanation import term_scores
from adapters.keyword.embedded_query import listed_documents, restricted, text_query
from adapters.model.document import Scope
from adapters.model.filter import clearance_of
from adapters.model.index_terms import max_terms
from adapters.model.sources import KEYWORD
from adapters.model.term_score import TermScore
from adapters.ports.retriever import SourceQuery
from fusion.columns import Ranking
from fusion.largest import top
from fusion.values import DocId

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
            positions, scores = _search(searcher, text_query(parsed, condition), query.depth, segments)
        best = top(scores, positions, query.depth)
        return Ranking.of_docs(KEYWORD.name, positions.take(best), scores.take(best), segments)

    async def term_scores(self, query: SourceQuery, ids: Sequence[DocId]) -> Mapping[DocId, Sequence[TermScore]]:
        """See :class:`adapters.ports.TermScorer`."""
        view, scope = pinned_view(self._index, query), query.scope
        positions = {id_: view.segments.position((scope.tenant, scope.environment, id_)) for id_ in ids}
        docnos = {int(view.segments.docnos[at]): id_ for id_, at in positions.items() if at is not None}
        if not docnos:  # an index without any document has no component to read
            return {}
        index = view.component(self._component).of(scope, clearance_of(query.access))
        if index is None:
            return {}
        parsed = _parsed(scope, query.text, query.expansions, index.languages)
        found = await anyio.to_thread.run_sync(term_scores, index.searcher, parsed, list(docnos))
        return {docnos[docno]: scores for docno, scores in found.items()}


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
    text = text_query(parsed, None)
    searched = 2 * depth * int(searcher.num_docs) // mask.count
    if searched <= _MAX_SEARCHED:
        positions, scores = _search(searcher, text, searched, segments)
        passing = mask.flags[positions]
        if passing.sum() >= depth or len(positions) < searched:
            return positions[passing], scores[passing]
    listed = listed_documents(segments.docnos[mask.flags].tolist())
    return _search(searcher, restricted(text, listed), depth, segments)
