"""Keywords in this process: BM25 by tantivy.

Robertson, Zaragoza: "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; k1 = 1.2, b = 0.75.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import tantivy

from adapters.engine.component import Delta
from adapters.engine.index import EmbeddedIndex, pinned_view
from adapters.engine.segment import Segment
from adapters.engine.segment_set import Mask, SegmentSet
from adapters.keyword import analysis
from adapters.model.document import Scope, fields
from adapters.model.filter import Filter
from adapters.model.index_terms import filter_compiler, filter_terms, max_terms
from adapters.model.sources import KEYWORD
from adapters.ports.retriever import SourceQuery
from adapters.storage import files
from fusion.columns import Ranking
from fusion.largest import top

_HEAP_BYTES = 128 * 1024 * 1024
_LOCKS = {".tantivy-writer.lock", ".tantivy-meta.lock"}


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("docno", indexed=True, fast=True)
    builder.add_text_field("body", tokenizer_name="trivium", index_option="position")
    builder.add_text_field("filter_terms", tokenizer_name="raw", index_option="basic")
    return builder.build()


_SCHEMA = _schema()
_MUST, _SHOULD, _MUST_NOT = tantivy.Occur.Must, tantivy.Occur.Should, tantivy.Occur.MustNot
_MAX_SINGLE_TERMS = 16
"""Up to this number, looking terms up one by one is cheaper than as a set."""
_MAX_SEARCHED = 20_000
"""Maximum number of hits of a search without its filter, which are tested afterwards: each is a Python object."""
_MAX_FILTER_TERMS = 1_000
"""Maximum number of terms of a filter in a query; a larger filter is tested on the hits instead."""

_Found: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Positions, and the score of each."""


class KeywordComponent:
    """The files: a tantivy index over texts and filter terms, its unchanged files linked from the commit before."""

    name = "keyword"
    format = analysis.FORMAT

    def build(self, target: Path, previous: Path | None, segments: SegmentSet, delta: Delta) -> None:
        """Apply the delta to the commit before; without one, index all documents."""
        if previous is None or not (delta.added or delta.removed):
            added = segments.docnos[segments.live]
        else:
            added = np.asarray(delta.added, np.int64)
            for file in _index_files(previous):
                files.link_or_copy(file, target / file.name)
        try:
            self._apply(target, segments, added, delta.removed)
        except ValueError as error:  # tantivy raises it for a full disk, too
            raise OSError(f"the keyword index cannot be written: {error}") from error

    def _apply(self, target: Path, segments: SegmentSet, added: npt.NDArray[np.int64], removed: Sequence[int]) -> None:
        with _index(target).writer(_HEAP_BYTES, num_threads=1) as writer:
            if removed:
                # Not by term: delete_documents_by_term takes a Python int for a signed number and finds nothing.
                writer.delete_documents_by_query(tantivy.Query.term_set_query(_SCHEMA, "docno", list(removed)))
            for position in segments.positions(added):
                segment, row = segments.locate(int(position))
                writer.add_document(_document(segment, row))
        # Leaving the writer's context commits and waits for its merges: the folder is complete from here on.

    def open(self, folder: Path, segments: SegmentSet, before: tantivy.Searcher | None) -> tantivy.Searcher:
        """Map the index."""
        del segments, before
        if not (folder / "meta.json").exists():  # or tantivy would create an empty index there
            raise FileNotFoundError(f"no keyword index in {folder}")
        if os.access(folder, os.W_OK):
            return _index(folder).searcher()
        # On a read-only disk Tantivy cannot create its lock file, so it opens links to the files, which it maps.
        with TemporaryDirectory() as links:
            for file in _index_files(folder):
                Path(links, file.name).symlink_to(file)
            return _index(Path(links)).searcher()

    def count(self, index: tantivy.Searcher, segments: SegmentSet) -> int:
        """Number of documents that are not deleted."""
        del segments
        return int(index.num_docs)

    def fragment_count(self, index: tantivy.Searcher) -> int:
        """Number of Tantivy's own segments."""
        return int(index.num_segments)


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
        parsed = _parsed(query.scope, query.text, query.expansions)
        if not mask.count or not parsed.words:
            return Ranking.empty(KEYWORD.name)
        searcher = view.component(self._component)
        if max_terms(query.filter) > _MAX_FILTER_TERMS:
            positions, scores = _search_with_mask(searcher, parsed, query.depth, mask, segments)
        else:
            # The index contains living documents only, so a filter that passes all of them is left out.
            condition = None if mask.count == segments.count else query.filter
            positions, scores = _search(searcher, _query(parsed, condition), query.depth, segments)
        best = top(scores, positions, query.depth)
        return Ranking.of_docs(KEYWORD.name, positions.take(best), scores.take(best), segments)


@lru_cache(maxsize=16)
def _parsed(scope: Scope, text: str, expansions: tuple[str, ...]) -> analysis.ParsedQuery:
    """Parse a query once for all collections of a request.

    :param scope: a part of the cache key, so that the time does not reveal what other tenants searched for.
    """
    del scope
    return analysis.parse_query(text, expansions=expansions)


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
    searched = 2 * depth * segments.count // mask.count
    if searched <= _MAX_SEARCHED:
        positions, scores = _search(searcher, text, searched, segments)
        passing = mask.flags[positions]
        if passing.sum() >= depth or len(positions) < searched:
            return positions[passing], scores[passing]
    listed = tantivy.Query.term_set_query(_SCHEMA, "docno", segments.docnos[mask.flags].tolist())
    return _search(searcher, _restricted(text, listed), depth, segments)


def _query(parsed: analysis.ParsedQuery, condition: Filter | None) -> tantivy.Query:
    """A query without parsed syntax: user text is only the value of a term."""
    term = tantivy.Query.term_query
    # A word that occurs twice is two clauses: a boosted one makes tantivy's union of words a tenth slower.
    clauses = [(_SHOULD, term(_SCHEMA, "body", word, "freq")) for word in parsed.words]
    occur = _MUST if parsed.phrases_required else _SHOULD
    clauses += [(occur, _phrase(phrase)) for phrase in parsed.phrases]
    expansions = [tantivy.Query.boost_query(_phrase(each), analysis.EXPANSION_WEIGHT) for each in parsed.expansions]
    clauses += [(_SHOULD, expansion) for expansion in expansions]
    text = tantivy.Query.boolean_query(clauses)
    if condition is None:
        return text
    return _restricted(text, _compile(condition))


def _restricted(text: tantivy.Query, allowed: tantivy.Query) -> tantivy.Query:
    """Documents that match both; only the text has a score."""
    return tantivy.Query.boolean_query([(_MUST, text), (_MUST, tantivy.Query.const_score_query(allowed, 0.0))])


def _phrase(terms: Sequence[str]) -> tantivy.Query:
    if len(terms) == 1:
        return tantivy.Query.term_query(_SCHEMA, "body", terms[0], "freq")
    return tantivy.Query.phrase_query(_SCHEMA, "body", list(terms))


class _TermQueries:
    """Filters as queries over the field of filter terms; their score means nothing."""

    def any_term(self, terms: Sequence[str]) -> tantivy.Query:
        if len(terms) > _MAX_SINGLE_TERMS:
            return tantivy.Query.term_set_query(_SCHEMA, "filter_terms", terms)
        return self.any_of([tantivy.Query.term_query(_SCHEMA, "filter_terms", term, "basic") for term in terms])

    def all_of(self, queries: Sequence[tantivy.Query]) -> tantivy.Query:
        if not queries:
            return tantivy.Query.all_query()
        return tantivy.Query.boolean_query([(_MUST, query) for query in queries])

    def any_of(self, queries: Sequence[tantivy.Query]) -> tantivy.Query:
        return tantivy.Query.boolean_query([(_SHOULD, query) for query in queries])

    def negate(self, query: tantivy.Query) -> tantivy.Query:
        return tantivy.Query.boolean_query([(_MUST, tantivy.Query.all_query()), (_MUST_NOT, query)])


_compile = filter_compiler(_TermQueries())


def _document(segment: Segment, row: int) -> tantivy.Document:
    record = segment.record(row)
    values = {
        "docno": int(segment.docnos[row]),
        "body": analysis.indexed_texts(record.document),
        "filter_terms": filter_terms(fields(record)),
    }
    return tantivy.Document.from_dict(values, _SCHEMA)


def _index_files(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.name not in _LOCKS]


def _index(folder: Path) -> tantivy.Index:
    index = tantivy.Index(_SCHEMA, str(folder))
    index.register_tokenizer("trivium", analysis.analyzer())
    return index
