"""Keywords in this process: BM25 by tantivy.

Robertson, Zaragoza: "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; k1 = 1.2, b = 0.75.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tantivy

from adapters import files
from adapters.document import fields
from adapters.embedded import Catalog, Change, Library
from adapters.embedded.segment import Segment
from adapters.filter import Filter
from adapters.keyword import analysis
from adapters.labels import compile_filter, labels
from adapters.port import Query
from fusion import Ranking

_HEAP_BYTES = 128 * 1024 * 1024
_NOT_SHARED = {".tantivy-writer.lock", ".tantivy-meta.lock"}


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("docno", indexed=True, fast=True)
    builder.add_text_field("body", tokenizer_name="trivium", index_option="position")
    builder.add_text_field("labels", tokenizer_name="raw", index_option="basic")
    return builder.build()


_SCHEMA = _schema()
_MUST, _SHOULD, _MUST_NOT = tantivy.Occur.Must, tantivy.Occur.Should, tantivy.Occur.MustNot
_FEW = 16
"""Labels that are cheaper looked up one by one than as a set."""


class KeywordPart:
    """The files: a tantivy index over texts and labels, its unchanged files shared with the version before."""

    name = "keyword"
    version = analysis.VERSION

    def build(self, target: Path, previous: Path | None, catalog: Catalog, change: Change) -> None:
        """Delete what is gone from the version before, add what is new; everything anew, if nothing is."""
        if previous is None or not (change.added or change.removed):
            added = catalog.docnos[catalog.live]
        else:
            added = np.asarray(change.added, np.int64)
            for file in previous.iterdir():
                if file.name not in _NOT_SHARED:
                    files.share(file, target / file.name)
        try:
            self._change(target, catalog, added, change.removed)
        except ValueError as error:  # which is what tantivy raises for a full disk, too
            raise OSError(f"the keyword index cannot be written: {error}") from error

    def _change(self, target: Path, catalog: Catalog, added: npt.NDArray[np.int64], removed: Sequence[int]) -> None:
        with _index(target).writer(_HEAP_BYTES, num_threads=1) as writer:
            if removed:
                # Not by term: delete_documents_by_term takes a Python int for a signed number and finds nothing.
                writer.delete_documents_by_query(tantivy.Query.term_set_query(_SCHEMA, "docno", list(removed)))
            for position in catalog.positions(added):
                segment, row = catalog.locate(int(position))
                writer.add_document(_document(segment, row))
        # Leaving the writer's context commits and waits for its merges: the folder is whole from here on.

    def open(self, folder: Path, catalog: Catalog) -> tantivy.Searcher:
        """Map the index."""
        del catalog
        if not (folder / "meta.json").exists():  # or tantivy would make an empty index there
            raise FileNotFoundError(f"no keyword index in {folder}")
        return _index(folder).searcher()

    def count(self, index: tantivy.Searcher, catalog: Catalog) -> int:
        """Documents that are not deleted."""
        del catalog
        return int(index.num_docs)

    def pieces(self, index: tantivy.Searcher) -> int:
        """Tantivy's own segments."""
        return int(index.num_segments)


class EmbeddedKeyword:
    """The keyword source of a library that keeps a :class:`KeywordPart`."""

    def __init__(self, library: Library, part: KeywordPart) -> None:
        self._library = library
        self._part = part

    async def search(self, query: Query) -> Ranking:
        """The best documents by BM25, which is the score (0 and up). Ties by age, the oldest first."""
        snapshot = self._library.current()
        mask = snapshot.catalog.mask(query.filter)
        asked = analysis.terms(query.text, expansions=query.expansions)
        if not mask.count or not asked.words:
            return Ranking("keyword", (), ())
        searcher = snapshot.index(self._part)
        # The index holds the living only, so a filter that passes all of them need not be asked.
        everyone = mask.count == snapshot.catalog.count
        hits = searcher.search(_query(asked, None if everyone else query.filter), query.depth, count=False).hits
        docnos = np.asarray(searcher.fast_field_values("docno", [address for _, address in hits]), np.int64)
        positions = snapshot.catalog.positions(docnos).tolist()
        best = sorted((-score, position) for (score, _), position in zip(hits, positions, strict=True))
        return snapshot.catalog.ranking(
            "keyword", [position for _, position in best], [-negative for negative, _ in best]
        )


def _query(asked: analysis.Terms, wanted: Filter | None) -> tantivy.Query:
    """No syntax is ever parsed: user text is only the value of a term."""
    term = tantivy.Query.term_query
    # A word asked twice is a clause twice: a boosted clause would lose tantivy's skipping of hopeless blocks.
    parts = [(_SHOULD, term(_SCHEMA, "body", word, "freq")) for word in asked.words]
    occur = _MUST if asked.demanded else _SHOULD
    parts += [(occur, _phrase(phrase)) for phrase in asked.phrases]
    parts += [(_SHOULD, tantivy.Query.boost_query(_phrase(each), analysis.EXPANSION)) for each in asked.expansions]
    text = tantivy.Query.boolean_query(parts)
    if wanted is None:
        return text
    allowed = tantivy.Query.const_score_query(compile_filter(wanted, _Terms()), 0.0)
    return tantivy.Query.boolean_query([(_MUST, text), (_MUST, allowed)])


def _phrase(terms: Sequence[str]) -> tantivy.Query:
    if len(terms) == 1:
        return tantivy.Query.term_query(_SCHEMA, "body", terms[0], "freq")
    return tantivy.Query.phrase_query(_SCHEMA, "body", list(terms))


class _Terms:
    """Filters as queries over the field ``labels``; their score means nothing."""

    def holds(self, labels: Sequence[str]) -> tantivy.Query:
        if len(labels) > _FEW:
            return tantivy.Query.term_set_query(_SCHEMA, "labels", labels)
        return self.some([tantivy.Query.term_query(_SCHEMA, "labels", label, "basic") for label in labels])

    def every(self, parts: Sequence[tantivy.Query]) -> tantivy.Query:
        query = tantivy.Query
        return query.boolean_query([(_MUST, part) for part in parts]) if parts else query.all_query()

    def some(self, parts: Sequence[tantivy.Query]) -> tantivy.Query:
        return tantivy.Query.boolean_query([(_SHOULD, part) for part in parts])

    def no(self, part: tantivy.Query) -> tantivy.Query:
        return tantivy.Query.boolean_query([(_MUST, tantivy.Query.all_query()), (_MUST_NOT, part)])


def _document(segment: Segment, row: int) -> tantivy.Document:
    record = segment.record(row)
    values = {
        "docno": int(segment.docnos[row]),
        "body": analysis.values(record.document),
        "labels": labels(fields(record)),
    }
    return tantivy.Document.from_dict(values, _SCHEMA)


def _index(folder: Path) -> tantivy.Index:
    index = tantivy.Index(_SCHEMA, str(folder))
    index.register_tokenizer("trivium", analysis.analyzer())
    return index
