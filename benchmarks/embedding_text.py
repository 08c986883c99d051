"""What each part of the text that is encoded for a chunk is worth: a part of ``make bench-quality``.

The documents of judged data sets are split into chunks as ``trivium index`` splits them, by default into small ones of
50 tokens, so that most documents have several. The vectors of the chunks alone are searched; a document has the score
of its best chunk. A chunk is encoded with the title of its document, and with some tokens before and after it. For
headings, twenty documents at a time are the sections of one without a title: the first chunk of a section has its
heading in any case.
"""

from __future__ import annotations

import argparse
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rich.table import Table

from adapters import Document
from adapters.encoders.documents import DocumentVectors
from adapters.encoders.minilm import MiniLM
from adapters.encoders.passages import AROUND
from adapters.model.batching import batches
from benchmarks.claims import out
from orchestrator.evaluation.comparison import compare
from orchestrator.evaluation.dataset import Dataset, read_dataset
from orchestrator.evaluation.measures import MAIN_MEASURE, mean, measure_run
from orchestrator.indexing.chunks import Chunker
from orchestrator.indexing.corpus import parse_corpus
from orchestrator.indexing.ndjson import ValidLine

_DEPTH = 100
_CHUNK_TOKENS = 50
_SECTIONS = 20


class _Chunk(NamedTuple):
    """A chunk, and the id of the document that judgments name."""

    chunk: Document
    judged: str


def main() -> None:
    """Measure each of the folders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=_CHUNK_TOKENS, help="of a chunk")
    parser.add_argument("folders", type=Path, nargs="+", help="BEIR folders with judged queries")
    model, arguments = MiniLM(), parser.parse_args()

    def chunker(around: int = AROUND) -> Chunker:
        return Chunker(model.tokens.splitter(arguments.tokens, around), arguments.tokens)

    text, titled = DocumentVectors(model, ()), DocumentVectors(model, ("title",))
    neighbors, headings = DocumentVectors(model, ("title", "neighbors")), DocumentVectors(model, ("headings",))
    for folder in arguments.folders:
        dataset = read_dataset(folder)
        documents = [line.document for line in parse_corpus(dataset.corpus) if isinstance(line, ValidLine)]
        chunks = {around: list(_chunks(chunker(around), documents)) for around in (20, 40)}
        sections = list(_chunks_of_sections(chunker(), documents))
        runs = {
            "title, text": (chunks[20], titled),
            "text": (chunks[20], text),
            "title, text, 20 tokens on each side": (chunks[20], neighbors),
            "title, text, 40 tokens on each side": (chunks[40], neighbors),
            "text of a section": (sections, text),
            "headings, text of a section": (sections, headings),
        }
        values = {name: _measured(model, dataset, *run) for name, run in runs.items()}
        table = Table(title=f"{dataset.name}: {len(chunks[20]):,} chunks, and in sections {len(sections):,}")
        for column in ("encoded", f"{MAIN_MEASURE} of vectors", "against", "", "p"):
            table.add_column(column, justify="left" if column in {"encoded", "against"} else "right")
        for name in runs:
            base = "text of a section" if "section" in name else "title, text"
            difference = compare(name, base, values[name], values[base])
            compared = (base, f"{difference.difference:+.3f}", f"{difference.p:.4f}") if name != base else ("", "", "")
            table.add_row(name, f"{mean(values[name]):.3f}", *compared)
        out.print(table)


def _chunks(chunker: Chunker, documents: Sequence[Document]) -> Iterator[_Chunk]:
    for document in documents:
        for chunk in chunker.chunked(document, is_structured=False)[1:] or (document,):
            yield _Chunk(chunk, document.id)


def _chunks_of_sections(chunker: Chunker, documents: Sequence[Document]) -> Iterator[_Chunk]:
    for sections in batches(documents, _SECTIONS):
        texts = [f"# {' '.join(each.title.split())}\n\n{each.text}\n\n" for each in sections]
        starts = np.cumsum([0, *map(len, texts)]).tolist()
        joined = Document(id=sections[0].id, text="".join(texts))
        for chunk in chunker.chunked(joined)[1:]:
            yield _Chunk(chunk, sections[bisect_right(starts, chunk.parent_start or 0) - 1].id)


def _measured(
    model: MiniLM, dataset: Dataset, chunks: Sequence[_Chunk], encoder: DocumentVectors
) -> Mapping[str, float]:
    windows = encoder.encode_documents([each.chunk for each in chunks])
    ids = np.array([each.judged for each in chunks])
    rows = np.repeat(np.arange(len(chunks)), [len(each) for each in windows])
    vectors = np.concatenate(windows)
    run = {query: _ranked(vectors @ model.encode(dataset.queries[query]), ids[rows]) for query in dataset.judgments}
    return measure_run(dataset.judgments, run)[MAIN_MEASURE]


def _ranked(scores: npt.NDArray[np.float32], ids: npt.NDArray[np.str_]) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    for row in np.argsort(-scores, kind="stable").tolist():
        best.setdefault(str(ids[row]), float(scores[row]))
        if len(best) == _DEPTH:
            break
    return list(best.items())


if __name__ == "__main__":
    main()
