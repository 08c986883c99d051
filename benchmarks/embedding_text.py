"""What each part of the text that is encoded for a chunk is worth: a part of ``make bench-quality``.

The passages of a judged data set are joined to long documents of 50, in the order of the corpus; each passage is a
section with its title as the heading, and the title of the first one is that of the document. The documents are split
as ``trivium index`` splits them, and the vectors of the chunks alone are searched. A passage has the score of its best
chunk.
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
from adapters.model.batching import batches
from benchmarks.claims import out
from orchestrator.evaluation.comparison import compare
from orchestrator.evaluation.dataset import Dataset, read_dataset
from orchestrator.evaluation.measures import MAIN_MEASURE, ByQuery, mean, measure_run
from orchestrator.indexing.chunks import DEFAULT_CHUNK_TOKENS, Chunker
from orchestrator.indexing.corpus import parse_corpus
from orchestrator.indexing.ndjson import ValidLine

_DEPTH = 100
_SECTIONS = 50
_Parts = Callable[[Document, Document], tuple[str, str]]
"""From a chunk and its document to the title and the text that are encoded."""


def main() -> None:
    """Measure each of the folders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", help="BEIR folders with judged queries")
    model = MiniLM()
    for folder in parser.parse_args().folders:
        dataset = read_dataset(folder)
        _print(model, dataset, _passages(dataset))


def _passages(dataset: Dataset) -> list[Document]:
    return [
        line.document
        for line in parse_corpus(dataset.corpus)
        if isinstance(line, ValidLine) and line.document.title and line.document.text
    ]


def _long_documents(passages: Sequence[Document]) -> list[Document]:
    """Documents whose headings end in the number of the passage."""
    sections = [f"## {_one_line(each.title)} [{number}]\n\n{each.text}" for number, each in enumerate(passages)]
    return [
        Document(id=str(number), title=passages[number * _SECTIONS].title, text="\n\n".join(part))
        for number, part in enumerate(batches(sections, _SECTIONS))
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("[", "(").replace("]", ")")


def _print(model: MiniLM, dataset: Dataset, passages: Sequence[Document]) -> None:
    documents = _long_documents(passages)
    chunker = Chunker(model.tokens.splitter(DEFAULT_CHUNK_TOKENS), DEFAULT_CHUNK_TOKENS)
    pairs = [(chunk, document) for document in documents for chunk in chunker.chunked(document)[1:]]
    ids = [passages[_number(chunk)].id for chunk, _ in pairs]
    table = Table(title=f"{len(documents)} documents, {len(pairs):,} chunks of {dataset.name}", title_justify="left")
    for column in ("encoded", f"{MAIN_MEASURE} of vectors", "against the text alone", "p"):
        table.add_column(column, justify="left" if column == "encoded" else "right")
    baseline: ByQuery | None = None
    for name, parts in _variants(model).items():
        values = _measured(model, dataset, pairs, ids, parts)
        baseline = baseline or values
        difference = compare(name, "text", values, baseline)
        figures = (f"{difference.difference:+.3f}", f"{difference.p:.4f}") if values is not baseline else ("", "")
        table.add_row(name, f"{mean(values):.3f}", *figures)
    out.print(table)


def _variants(model: MiniLM) -> Mapping[str, _Parts]:
    def text(chunk: Document, _: Document) -> tuple[str, str]:
        return "", _body(chunk)

    def title(chunk: Document, document: Document) -> tuple[str, str]:
        return document.title, _body(chunk)

    def heading(chunk: Document, _: Document) -> tuple[str, str]:
        return "", f"{_name(chunk)}\n{_body(chunk)}"

    def headings(chunk: Document, document: Document) -> tuple[str, str]:
        return f"{document.title}: {_name(chunk)}", _body(chunk)

    def neighbours(tokens: int) -> _Parts:
        def with_neighbours(chunk: Document, document: Document) -> tuple[str, str]:
            before = document.text[: chunk.parent_start][-16 * tokens :]
            after = document.text[chunk.parent_end :][: 16 * tokens]
            ends = [0, *model.tokens.ends(before)]
            following = model.tokens.ends(after)[:tokens]
            part = before[ends[-tokens - 1] if len(ends) > tokens else 0 :]
            return (
                f"{document.title}: {_name(chunk)}",
                f"{part} {_body(chunk)} {after[: following[-1] if following else 0]}",
            )

        return with_neighbours

    return {
        "text": text,
        "title, text": title,
        "heading, text": heading,
        "title, headings, text": headings,
        "title, headings, text, 20 tokens of each neighbour": neighbours(20),
        "title, headings, text, 40 tokens of each neighbour": neighbours(40),
    }


def _body(chunk: Document) -> str:
    """The text of a chunk without the line of its heading."""
    return chunk.text.partition("\n\n")[2] if chunk.text.startswith("## ") else chunk.text


def _name(chunk: Document) -> str:
    """The heading of a chunk, without the number of the passage."""
    return chunk.heading_path[-1].rpartition(" [")[0]


def _number(chunk: Document) -> int:
    return int(chunk.heading_path[-1].rpartition(" [")[2].removesuffix("]"))


def _measured(
    model: MiniLM,
    dataset: Dataset,
    pairs: Sequence[tuple[Document, Document]],
    passage_ids: Sequence[str],
    parts: _Parts,
) -> Mapping[str, float]:
    encoded = [parts(chunk, document) for chunk, document in pairs]
    windows = model.encode_documents([text for _, text in encoded], [title for title, _ in encoded])
    ids = np.array(passage_ids)
    rows = np.repeat(np.arange(len(pairs)), [len(each) for each in windows])
    vectors = np.concatenate(windows)
    present = set(ids.tolist())
    judgments = {
        query: {id_: grade for id_, grade in judged.items() if id_ in present}
        for query, judged in dataset.judgments.items()
    }
    judgments = {query: judged for query, judged in judgments.items() if judged}
    run = {query: _ranked(vectors @ model.encode(dataset.queries[query]), ids[rows]) for query in judgments}
    return measure_run(judgments, run)[MAIN_MEASURE]


def _ranked(scores: npt.NDArray[np.float32], ids: npt.NDArray[np.str_]) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    for row in np.argsort(-scores, kind="stable").tolist():
        best.setdefault(str(ids[row]), float(scores[row]))
        if len(best) == _DEPTH:
            break
    return list(best.items())


if __name__ == "__main__":
    main()
