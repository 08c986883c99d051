"""What every product gets: documents, queries, and their vectors, encoded once by the model of this service."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from adapters import Document
from adapters.encoders.minilm import MiniLM
from adapters.ports.encoders import EncodedText
from benchmarks.corpus import distinct_queries
from benchmarks.peers.products.product import Doc
from orchestrator.evaluation.dataset import read_dataset
from orchestrator.indexing.beir import parse_beir
from orchestrator.indexing.ndjson import InvalidLine

_VARIANTS, _QUERIES = 3, 1_000
_SHIFT, _OTHER = 1_237, 0.3
"""How far away in the corpus the other document of a variant is, and the fraction of its words."""


def prepare(beir: Path, folder: Path) -> None:
    """Write the data of a BEIR folder, unless it is written."""
    if folder.exists():
        return
    lines = list(parse_beir(beir))
    if bad := [line for line in lines if isinstance(line, InvalidLine)]:
        raise SystemExit(f"{beir}, line {bad[0].line}: {bad[0].error}")
    documents = [
        Doc(id=line.document.id, title=line.document.title, text=line.document.text)
        for line in lines
        if not isinstance(line, InvalidLine)
    ]
    model = MiniLM()
    # The other products have one vector for each document: the mean of its windows.
    windows = model.encode_texts([EncodedText(each["text"], each["title"]) for each in documents])
    means = np.stack([each.mean(axis=0) for each in windows])
    vectors = means / np.linalg.norm(means, axis=1, keepdims=True)
    queries = read_dataset(beir).queries
    query_vectors = np.stack([model.encode(text) for text in queries.values()])
    _write(folder, documents, vectors, queries, query_vectors)
    (folder / "beir").symlink_to(beir.resolve())


def enlarge(parts: Sequence[Path], folder: Path) -> None:
    """Write a larger set of several prepared ones: each document, and three variants of it.

    Three words in ten of a variant are those of another document, and its vector lies between both. The queries are
    made from the documents, and distinct, so that no product has seen one before; there are no judgments.
    """
    if folder.exists():
        return
    real: list[Doc] = []
    for part in parts:
        named = ({**each, "id": f"{part.name}-{each['id']}"} for each in read_json_lines(part / "documents.jsonl"))
        real += [Doc(**each) for each in named]
    real_vectors = np.concatenate([np.load(part / "documents.npy") for part in parts])
    documents, vectors = list(real), [real_vectors]
    rng = np.random.default_rng(1)
    for variant in range(1, _VARIANTS + 1):
        for row, each in enumerate(real):
            words = each["text"].split()
            others = real[(row + _SHIFT * variant) % len(real)]["text"].split() or ["nothing"]
            for at in np.flatnonzero(rng.random(len(words)) < _OTHER):
                words[at] = others[at % len(others)]
            documents.append(Doc(id=f"{each['id']}-{variant}", title=each["title"], text=" ".join(words)))
        between = (1 - _OTHER) * real_vectors + _OTHER * np.roll(real_vectors, -_SHIFT * variant, axis=0)
        vectors.append(between / np.linalg.norm(between, axis=1, keepdims=True))
    made = distinct_queries([Document(**each) for each in documents], 4 * _QUERIES)
    queries = {str(number): text for number, text in enumerate(made[:: max(1, len(made) // _QUERIES)][:_QUERIES])}
    model = MiniLM()
    query_vectors = np.stack([model.encode(text) for text in queries.values()])
    _write(folder, documents, np.concatenate(vectors).astype(np.float32), queries, query_vectors)
    (folder / "beir").mkdir()
    lines = ({"_id": each["id"], "title": each["title"], "text": each["text"]} for each in documents)
    (folder / "beir" / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def read_json_lines(path: Path) -> list[dict[str, str]]:
    """The objects of a file with one JSON object a line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def _write(
    folder: Path, documents: Sequence[Doc], vectors: np.ndarray, queries: dict[str, str], query_vectors: np.ndarray
) -> None:
    folder.mkdir(parents=True)
    (folder / "documents.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents))
    lines = (json.dumps({"id": id_, "text": text}) + "\n" for id_, text in queries.items())
    (folder / "queries.jsonl").write_text("".join(lines))
    np.save(folder / "documents.npy", vectors)
    np.save(folder / "queries.npy", query_vectors)
