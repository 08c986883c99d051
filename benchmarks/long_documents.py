"""Long documents with one passage that answers: a part of ``make bench-quality``.

A document consists of passages of a judged data set without a graph, 600 to 3,000 words of them in random order. One of
them answers a query, and no other document has that passage. Once the long documents are alone in the index, once there
are as many short ones as the data set has left; each time whole, and split into chunks.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

import anyio
from rich.table import Table

from adapters import Document
from adapters.encoders.tokens import Tokens
from adapters.model.document import passage
from benchmarks.claims import out, report
from benchmarks.known_item import reciprocal_ranks
from orchestrator.evaluation.dataset import read_dataset
from orchestrator.indexing.chunks import DEFAULT_CHUNK_TOKENS, Chunker
from orchestrator.indexing.corpus import parse_corpus
from orchestrator.indexing.ndjson import ValidLine

_COUNT = 100
_MIN_WORDS, _MAX_WORDS = 600, 3_000
_RUNS = {
    "vector": {"mode": "vector"},
    "keyword": {"mode": "keyword"},
    "joint": {"profile": "joint"},
    "rrf": {"profile": "rrf"},
    "weighted_rrf": {"profile": "weighted_rrf"},
}
_MIN_MRR = 0.8
_NOISE = 0.005
"""Half a document of a hundred."""


def main() -> None:
    """Measure the first of the folders that has no graph."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", help="BEIR folders with judged queries")
    folders = [folder for folder in parser.parse_args().folders if not (folder / "edges.jsonl").exists()]
    if not folders:
        raise SystemExit("none of the data sets is without a graph, so there are no long documents to make")
    long, short, queries = _documents(folders[0])
    words = sum(len(document.text.split()) for document in long) / len(long)
    table = Table(title=f"{len(long)} documents of {words:.0f} words on average: MRR@10", title_justify="left")
    for column in ("documents", *_RUNS):
        table.add_column(column, justify="left" if column == "documents" else "right")
    chunker = Chunker(Tokens().splitter(DEFAULT_CHUNK_TOKENS), DEFAULT_CHUNK_TOKENS)
    chunks = [chunk for document in long for chunk in chunker.chunked(document)]
    beside = f"beside {len(short):,} short ones"
    measured = {
        "alone": long,
        "alone, in chunks": chunks,
        beside: [*long, *short],
        f"{beside}, in chunks": [*chunks, *short],
    }
    found = {name: anyio.run(reciprocal_ranks, documents, queries, _RUNS) for name, documents in measured.items()}
    for name, ranks in found.items():
        table.add_row(name, *(f"{ranks[run]:.3f}" for run in _RUNS))
    out.print(table)
    alone, split = found["alone"], found["alone, in chunks"]
    best = max(alone["vector"], alone["keyword"])
    holds = report(
        alone["joint"] >= _MIN_MRR, f"long documents alone: MRR at least {_MIN_MRR:g}", f"{alone['joint']:.3f}"
    )
    is_better = report(alone["joint"] >= best, "and no less than that of a single source", f"{best:.3f}")
    is_no_worse = report(
        split["joint"] >= alone["joint"] - _NOISE, "and in chunks no less than whole", f"{split['joint']:.3f}"
    )
    raise SystemExit(0 if holds and is_better and is_no_worse else 1)


def _documents(folder: Path) -> tuple[list[Document], list[Document], list[tuple[str, str]]]:
    """Long documents, short ones, and queries with the ids of the long ones that answer them."""
    dataset = read_dataset(folder)
    documents = {
        line.document.id: line.document for line in parse_corpus(dataset.corpus) if isinstance(line, ValidLine)
    }
    relevant = {
        query: [id_ for id_, grade in judged.items() if grade > 0] for query, judged in dataset.judgments.items()
    }
    answers = {ids[0]: query for query, ids in sorted(relevant.items()) if len(ids) == 1}
    judged = {id_ for ids in relevant.values() for id_ in ids}
    rng = random.Random(0)
    others = [id_ for id_ in sorted(documents) if id_ not in judged]
    rng.shuffle(others)
    remaining = iter(others)
    chosen = rng.sample(sorted(answers), _COUNT)
    long = [
        Document(
            id=f"long-{id_}", text="\n\n".join(_shuffled([id_, *_fill(remaining, documents, rng)], documents, rng))
        )
        for id_ in chosen
    ]
    queries = [(dataset.queries[answers[id_]], f"long-{id_}") for id_ in chosen]
    return long, [documents[id_] for id_ in remaining], queries


def _fill(remaining: Iterator[str], documents: dict[str, Document], rng: random.Random) -> Iterator[str]:
    """Passages of some hundred to three thousand words in all."""
    words = rng.randint(_MIN_WORDS, _MAX_WORDS)
    while words > 0:
        id_ = next(remaining)
        words -= len(documents[id_].text.split())
        yield id_


def _shuffled(ids: list[str], documents: dict[str, Document], rng: random.Random) -> list[str]:
    rng.shuffle(ids)
    return [passage(documents[id_]) for id_ in ids]


if __name__ == "__main__":
    main()
