"""The files of the keyword index: one tantivy index for each scope and each sensitivity in it.

The scores of BM25 depend on all documents of an index: on their number, their lengths, and how many have a word. So
that no score depends on documents that the caller may not see, a scope has an index with its public documents, one
with its public and normal ones, and so on, for each sensitivity that its documents have: usually one.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import tantivy

from adapters.engine.component import Delta
from adapters.engine.segment import Segment
from adapters.engine.segment_set import SegmentSet
from adapters.keyword import analysis
from adapters.model.document import Scope, fields
from adapters.model.index_terms import filter_terms
from adapters.model.protection import SENSITIVITIES, Sensitivity, is_visible, visible_levels
from adapters.servers.fingerprints import fingerprint
from adapters.storage import files
from adapters.text.languages import ENGLISH, LANGUAGES, language_of

_HEAP_BYTES = 128 * 1024 * 1024
_LOCKS = {".tantivy-writer.lock", ".tantivy-meta.lock"}
_META = "meta.json"

_Scope: TypeAlias = tuple[str, str]
"""Tenant and environment."""


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("docno", indexed=True, fast=True)
    builder.add_text_field("words", tokenizer_name="terms", index_option="freq")
    builder.add_text_field("exact", tokenizer_name="terms", index_option="position")
    builder.add_text_field("filter_terms", tokenizer_name="raw", index_option="basic")
    return builder.build()


SCHEMA = _schema()
AT_SPACES = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
"""Splits terms, which :mod:`adapters.keyword.analysis` has separated by spaces."""
_LANGUAGE = "\0language\0"
"""Begins a term that all documents of a language have, beside those of filters."""


@dataclass(frozen=True, slots=True)
class OpenedIndex:
    """One index. ``meta`` is tantivy's description of it, which each commit of tantivy changes."""

    meta: bytes
    searcher: tantivy.Searcher
    languages: tuple[str, ...]
    """Those of the documents; English always."""


class KeywordIndexes:
    """All indexes of a commit.

    :param opened: by the name of the folder.
    """

    def __init__(self, opened: Mapping[str, OpenedIndex]) -> None:
        self.opened = opened

    def of(self, scope: Scope, clearance: Sensitivity) -> OpenedIndex | None:
        """The index of what a caller may see; ``None`` if that is nothing."""
        prefix = _prefix(scope.tenant, scope.environment)
        for level in visible_levels(clearance):
            if found := self.opened.get(f"{prefix}.{level}"):
                return found
        return None

    @property
    def documents(self) -> int:
        """Number of documents that are not deleted: those of the last index of each scope."""
        counts: dict[str, int] = defaultdict(int)
        for name, each in self.opened.items():
            scope = name.partition(".")[0]
            counts[scope] = max(counts[scope], int(each.searcher.num_docs))
        return sum(counts.values())


class KeywordComponent:
    """The files. Those of an index that a commit does not change are linked from the commit before."""

    name = "keyword"
    format = f"{analysis.FORMAT}-scopes"

    def build(self, target: Path, previous: Path | None, segments: SegmentSet, delta: Delta) -> None:
        """Apply the delta to the commit before; without one, index all documents."""
        if previous is None or not (delta.added or delta.removed):
            delta = Delta(segments.docnos[segments.live].tolist(), [])
        else:
            for folder in previous.iterdir():
                _link(folder, target / folder.name)
        by_scope = _by_scope(segments, segments.positions(np.asarray(delta.added, np.int64)))
        try:
            for scope in sorted(by_scope.keys() | delta.scopes):
                self._apply(target, scope, by_scope.get(scope, ()), segments, delta)
        except ValueError as error:  # tantivy raises it for a full disk, too
            raise OSError(f"the keyword index cannot be written: {error}") from error

    def _apply(
        self,
        target: Path,
        scope: _Scope,
        added: Sequence[tuple[Sensitivity, int]],
        segments: SegmentSet,
        delta: Delta,
    ) -> None:
        """Change the indexes of one scope."""
        removed = delta.removed if scope in delta.scopes else ()
        _create_missing(target, scope, {level for level, _ in added})
        for level in SENSITIVITIES:
            folder = target / _name(scope, level)
            visible = [position for sensitivity, position in added if is_visible(sensitivity, level)]
            if not folder.is_dir() or not (visible or removed):
                continue
            with _index(folder).writer(_HEAP_BYTES, num_threads=1) as writer:
                if removed:
                    # Not by term: delete_documents_by_term takes a Python int for a signed number and finds nothing.
                    writer.delete_documents_by_query(tantivy.Query.term_set_query(SCHEMA, "docno", list(removed)))
                for position in visible:
                    writer.add_document(_document(*segments.locate(position)))
            # Leaving the writer's context commits and waits for its merges: the folder is complete from here on.
            if not _searcher(folder).num_docs:
                shutil.rmtree(folder)

    def open(self, folder: Path, segments: SegmentSet, before: KeywordIndexes | None) -> KeywordIndexes:
        """Map the indexes."""
        if segments.count and not any(folder.iterdir()):
            raise FileNotFoundError(f"no keyword index in {folder}")
        known = before.opened if before else {}
        opened = {}
        for path in sorted(folder.iterdir()):
            meta = (path / _META).read_bytes()  # if it did not exist, tantivy would create an empty index
            same = known.get(path.name)
            opened[path.name] = same if same and same.meta == meta else _opened(meta, _searcher(path))
        return KeywordIndexes(opened)

    def count(self, index: KeywordIndexes, segments: SegmentSet) -> int:
        """Number of documents that are not deleted."""
        del segments
        return index.documents

    def fragment_count(self, index: KeywordIndexes) -> int:
        """Number of tantivy's own segments in one index."""
        return max((int(each.searcher.num_segments) for each in index.opened.values()), default=0)


def _opened(meta: bytes, searcher: tantivy.Searcher) -> OpenedIndex:
    spoken = [each for each in LANGUAGES if searcher.doc_freq("filter_terms", _LANGUAGE + each)]
    return OpenedIndex(meta, searcher, tuple(dict.fromkeys((ENGLISH, *spoken))))


@lru_cache(maxsize=1_024)
def _prefix(tenant: str, environment: str) -> str:
    return fingerprint(tenant, environment)


def _name(scope: _Scope, level: Sensitivity) -> str:
    return f"{_prefix(*scope)}.{level}"


def _create_missing(target: Path, scope: _Scope, levels: Iterable[Sensitivity]) -> None:
    """Create the indexes of levels that the scope's documents did not have before: each starts as the one below it."""
    before: Path | None = None
    for level in SENSITIVITIES:
        folder = target / _name(scope, level)
        if level in levels and not folder.is_dir():
            folder.mkdir()
            if before:
                _link(before, folder)
        elif folder.is_dir():
            before = folder


def _link(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for file in _index_files(source):
        files.link_or_copy(file, target / file.name)


def _by_scope(
    segments: SegmentSet, positions: npt.NDArray[np.int64]
) -> Mapping[_Scope, Sequence[tuple[Sensitivity, int]]]:
    """The documents of each scope: the sensitivity and the position of each."""
    grouped: dict[_Scope, list[tuple[Sensitivity, int]]] = defaultdict(list)
    columns: dict[str, tuple[Sequence[str], Sequence[str], Sequence[Sensitivity]]] = {}
    for position in positions.tolist():
        segment, row = segments.locate(position)
        if segment.name not in columns:
            columns[segment.name] = tuple(list(_texts(segment, field)) for field in _ACCESS)  # type: ignore[assignment]
        tenants, environments, sensitivities = columns[segment.name]
        grouped[tenants[row], environments[row]].append((sensitivities[row], position))
    return grouped


_ACCESS = ("tenant", "environment", "sensitivity")


def _texts(segment: Segment, field: str) -> Iterator[str]:
    """The text of a field in each row; every document has one."""
    names, (_, codes) = segment.columns.texts(field)
    return (names[code] for code in codes.tolist())


def _document(segment: Segment, row: int) -> tantivy.Document:
    record = segment.record(row)
    terms = analysis.document_terms(record.document)
    values = {
        "docno": int(segment.docnos[row]),
        "words": terms.words,
        "exact": terms.exact,
        "filter_terms": [*filter_terms(fields(record)), _LANGUAGE + language_of(record.document.language)],
    }
    return tantivy.Document.from_dict(values, SCHEMA)


def _index_files(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.name not in _LOCKS]


def _searcher(folder: Path) -> tantivy.Searcher:
    """Map an index."""
    if os.access(folder, os.W_OK):
        return _index(folder).searcher()
    # On a read-only disk tantivy cannot create its lock file, so it opens links to the files, which it maps.
    with TemporaryDirectory() as links:
        for file in _index_files(folder):
            Path(links, file.name).symlink_to(file)
        return _index(Path(links)).searcher()


def _index(folder: Path) -> tantivy.Index:
    index = tantivy.Index(SCHEMA, str(folder))
    index.register_tokenizer("terms", AT_SPACES)
    return index
