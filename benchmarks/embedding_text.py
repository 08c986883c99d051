"""What each part of the text that is encoded for a chunk is worth: a part of ``make bench-quality``.

The documents of judged data sets are split into chunks as ``trivium index`` splits them, but small ones of 50 tokens,
so that most documents have several. The vectors of the chunks alone are searched; a document has the score of its best
chunk. A chunk is encoded with the title of its document, and with the end of the chunk before and the beginning of the
chunk after it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.table import Table

from adapters import Document
from adapters.encoders.minilm import MiniLM
from benchmarks.claims import out
from orchestrator.evaluation.comparison import compare
from orchestrator.evaluation.dataset import Dataset, read_dataset
from orchestrator.evaluation.measures import MAIN_MEASURE, ByQuery, mean, measure_run
from orchestrator.indexing.chunks import Chunker
from orchestrator.indexing.corpus import parse_corpus
from orchestrator.indexing.ndjson import ValidLine

_DEPTH = 100
_CHUNK_TOKENS = 50
_Parts = Callable[[Document, Document], tuple[str, str]]
"""From a chunk and its document to the title and the text that are encoded."""


def main() -> None:
    """Measure each of the folders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", help="BEIR folders with judged queries")
    model = MiniLM()
    for folder in parser.parse_args().folders:
        _print(model, read_dataset(folder))


def _print(model: MiniLM, dataset: Dataset) -> None:
    chunker = Chunker(model.tokens.splitter(_CHUNK_TOKENS), _CHUNK_TOKENS)
    documents = [line.document for line in parse_corpus(dataset.corpus) if isinstance(line, ValidLine)]
    pairs = [(chunk, document) for document in documents for chunk in chunker.chunked(document)[1:] or (document,)]
    title = f"{len(documents):,} documents, {len(pairs):,} chunks of {dataset.name}"
    table = Table(title=title, title_justify="left")
    for column in ("encoded", f"{MAIN_MEASURE} of vectors", "against title and text", "p"):
        table.add_column(column, justify="left" if column == "encoded" else "right")
    baseline: ByQuery | None = None
    for name, parts in _variants(model).items():
        values = _measured(model, dataset, pairs, parts)
        baseline = baseline or values
        difference = compare(name, "title, text", values, baseline)
        figures = (f"{difference.difference:+.3f}", f"{difference.p:.4f}") if values is not baseline else ("", "")
        table.add_row(name, f"{mean(values):.3f}", *figures)
    out.print(table)


def _variants(model: MiniLM) -> Mapping[str, _Parts]:
    def titled(chunk: Document, document: Document) -> tuple[str, str]:
        return document.title, chunk.text

    def text(chunk: Document, _: Document) -> tuple[str, str]:
        return "", chunk.text

    def neighbours(tokens: int) -> _Parts:
        def with_neighbours(chunk: Document, document: Document) -> tuple[str, str]:
            if chunk is document:
                return document.title, chunk.text
            before = document.text[: chunk.parent_start][-16 * tokens :]
            after = document.text[chunk.parent_end :][: 16 * tokens]
            ends = [0, *model.tokens.ends(before)]
            following = model.tokens.ends(after)[:tokens]
            part = before[ends[-tokens - 1] if len(ends) > tokens else 0 :]
            return document.title, f"{part} {chunk.text} {after[: following[-1] if following else 0]}"

        return with_neighbours

    return {
        "title, text": titled,
        "text": text,
        "title, text, 20 tokens of each neighbour": neighbours(20),
        "title, text, 40 tokens of each neighbour": neighbours(40),
    }


def _measured(
    model: MiniLM, dataset: Dataset, pairs: Sequence[tuple[Document, Document]], parts: _Parts
) -> Mapping[str, float]:
    encoded = [parts(chunk, document) for chunk, document in pairs]
    windows = model.encode_texts([text for _, text in encoded], [title for title, _ in encoded])
    ids = np.array([document.id for _, document in pairs])
    rows = np.repeat(np.arange(len(pairs)), [len(each) for each in windows])
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
