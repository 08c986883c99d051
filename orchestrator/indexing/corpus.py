"""The documents of a folder: ``documents.ndjson``, with every field of a document, or the corpus of a BEIR data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from fusion.doc_ids import DEFAULT_COLLECTION
from orchestrator.indexing.beir import parse_beir
from orchestrator.indexing.ndjson import ParsedLine, ValidLine, parse_ndjson

CORPUS_FILES = ("documents.ndjson", "corpus.jsonl")


def corpus_file(folder: Path) -> Path | None:
    """The file with the documents of a folder; ``None`` if it has none.

    :raises FileExistsError: if it has both.
    """
    found = [folder / name for name in CORPUS_FILES if (folder / name).is_file()]
    if len(found) > 1:
        raise FileExistsError(f"{folder} has {' and '.join(CORPUS_FILES)}: keep one of them")
    return found[0] if found else None


def count_lines(path: Path) -> int:
    """Number of lines of a file, for progress."""
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


def in_collection(lines: Iterable[ParsedLine], collection: str | None) -> Iterator[ParsedLine]:
    """The lines, with the documents of the default collection in another one, if it is named."""
    for line in lines:
        if collection is not None and isinstance(line, ValidLine) and line.document.collection == DEFAULT_COLLECTION:
            yield replace(line, document=replace(line.document, collection=collection))
        else:
            yield line


def parse_corpus(path: Path) -> Iterator[ParsedLine]:
    """The documents of a file that :func:`corpus_file` returned."""
    if path.name != CORPUS_FILES[0]:
        yield from parse_beir(path.parent)
        return
    with path.open("rb") as lines:
        yield from parse_ndjson(lines)
