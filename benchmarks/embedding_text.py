"""What each part of the text that is encoded for a chunk is worth: a part of ``make bench-quality``.

The documents of judged data sets are split into chunks as ``trivium index`` splits them, by default into small ones of
50 tokens, so that most documents have several. The vectors of the chunks alone are searched; a document has the score
of its best chunk. A chunk is encoded with the title of its document, and with the end of the chunk before and the
beginning of the chunk after it. For headings, twenty documents at a time are the sections of one without a title: the
first chunk of a section has its heading in any case.
"""

from __future__ import annotations

import argparse
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from rich.table import Table

from adapters import Document
from adapters.encoders.documents import DocumentVectors
from adapters.encoders.minilm import MiniLM
from adapters.model.batching import batches
from benchmarks.claims import out
from orchestrator.evaluation.comparison import compare
from orchestrator.evaluation.dataset import Dataset, read_dataset
from orchestrator.evaluation.measures import MAIN_MEASURE, ByQuery, mean, measure_run
from orchestrator.indexing.chunks import Chunker
from orchestrator.indexing.corpus import parse_corpus
from orchestrator.indexing.ndjson import ValidLine

_DEPTH = 100
_CHUNK_TOKENS = 50
_SECTIONS = 20


class _Chunk(NamedTuple):
    """A chunk, the document that it is from, and the id that judgments name."""

    chunk: Document
    document: Document
    judged: str


_Texts: TypeAlias = Callable[[_Chunk], tuple[str, str]]
"""The text that is encoded, and what each of its windows begins with."""


def main() -> None:
    """Measure each of the folders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=_CHUNK_TOKENS, help="of a chunk")
    parser.add_argument("folders", type=Path, nargs="+", help="BEIR folders with judged queries")
    model, arguments = MiniLM(), parser.parse_args()
    chunker = Chunker(model.tokens.splitter(arguments.tokens), arguments.tokens)
    for folder in arguments.folders:
        dataset = read_dataset(folder)
        documents = [line.document for line in parse_corpus(dataset.corpus) if isinstance(line, ValidLine)]
        _print(model, dataset, list(_chunks(chunker, documents)), _variants(model))
        _print(model, dataset, list(_chunks_of_sections(chunker, documents)), _with_headings(model))


def _chunks(chunker: Chunker, documents: Sequence[Document]) -> Iterator[_Chunk]:
    for document in documents:
        for chunk in chunker.chunked(document, is_structured=False)[1:] or (document,):
            yield _Chunk(chunk, document, document.id)


def _chunks_of_sections(chunker: Chunker, documents: Sequence[Document]) -> Iterator[_Chunk]:
    for sections in batches(documents, _SECTIONS):
        texts = [f"# {' '.join(each.title.split())}\n\n{each.text}\n\n" for each in sections]
        starts = np.cumsum([0, *map(len, texts)]).tolist()
        joined = Document(id=sections[0].id, text="".join(texts))
        for chunk in chunker.chunked(joined)[1:]:
            yield _Chunk(chunk, joined, sections[bisect_right(starts, chunk.parent_start or 0) - 1].id)


def _print(model: MiniLM, dataset: Dataset, chunks: Sequence[_Chunk], variants: Mapping[str, _Texts]) -> None:
    table = Table(title=f"{len(chunks):,} chunks of {dataset.name}", title_justify="left")
    (base, *_) = variants
    for column in ("encoded", f"{MAIN_MEASURE} of vectors", f"against {base}", "p"):
        table.add_column(column, justify="left" if column == "encoded" else "right")
    baseline: ByQuery | None = None
    for name, texts in variants.items():
        values = _measured(model, dataset, chunks, texts)
        baseline = baseline or values
        difference = compare(name, base, values, baseline)
        figures = (f"{difference.difference:+.3f}", f"{difference.p:.4f}") if values is not baseline else ("", "")
        table.add_row(name, f"{mean(values):.3f}", *figures)
    out.print(table)


def _variants(model: MiniLM) -> Mapping[str, _Texts]:
    text, titled = DocumentVectors(model, ()), DocumentVectors(model, ("title",))

    def neighbours(tokens: int) -> _Texts:
        def with_neighbours(each: _Chunk) -> tuple[str, str]:
            own, beginning = titled.texts(each.chunk)
            if each.chunk is each.document:
                return own, beginning
            before = each.document.text[: each.chunk.parent_start][-16 * tokens :]
            after = each.document.text[each.chunk.parent_end :][: 16 * tokens]
            ends = [0, *model.tokens.ends(before)]
            following = model.tokens.ends(after)[:tokens]
            part = before[ends[-tokens - 1] if len(ends) > tokens else 0 :]
            return f"{part} {own} {after[: following[-1] if following else 0]}", beginning

        return with_neighbours

    return {
        "text": lambda each: text.texts(each.chunk),
        "title, text": lambda each: titled.texts(each.chunk),
        "title, text, 20 tokens of each neighbour": neighbours(20),
        "title, text, 40 tokens of each neighbour": neighbours(40),
    }


def _with_headings(model: MiniLM) -> Mapping[str, _Texts]:
    text, headings = DocumentVectors(model, ()), DocumentVectors(model, ("headings",))
    return {
        "text of a section": lambda each: text.texts(each.chunk),
        "headings, text of a section": lambda each: headings.texts(each.chunk),
    }


def _measured(model: MiniLM, dataset: Dataset, chunks: Sequence[_Chunk], texts: _Texts) -> Mapping[str, float]:
    windows = model.encode_texts(*zip(*map(texts, chunks), strict=True))
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
