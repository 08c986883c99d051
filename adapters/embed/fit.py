"""Fitting a query table to a corpus, without labels.

Ridge regression: find the token vectors ``E`` with the least ``sum_i |mean-like sum of E over i - y_i|² + λ|E - E0|²``,
rows ``i`` being documents with their stored vectors and made-up queries with the model's vectors. Solved through
its normal equations by conjugate gradients with a diagonal preconditioner (Shewchuk 1994, appendix B3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy import sparse

from adapters.document import passage
from adapters.embed.minilm import MiniLM
from adapters.embed.table import QueryTable
from adapters.port import Entry, Matrix

RECIPE = 1
"""Counted up whenever the same corpus would give another table."""

MAX_DOCUMENTS = 20_000
MAX_QUERIES = 8_000
_HELD_OUT = 300
_LAMBDA = 0.3
_PRIOR = 0.1
_ITERATIONS = 20
_DOCUMENT_TOKENS = 256

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n{2,}")
_QUESTIONS = ("what is", "how does", "who is", "how to", "why does", "where is")


def fit(
    model: MiniLM, entries: Sequence[Entry], cache: Path, progress: Callable[[str], None] = lambda _: None
) -> QueryTable:
    """Fit a table to a sample of a corpus, as it is stored.

    :param cache: folder for the model's vectors of single tokens, the same for every corpus.
    :param progress: told the name of each step as it begins.
    """
    titles = [entry.record.document.title for entry in entries]
    texts = [entry.record.document.text for entry in entries]
    vectors = np.stack([entry.vector for entry in entries])
    progress("query table: single tokens")
    prior = _token_vectors(model, cache)
    progress("query table: made-up queries")
    queries = pseudo_queries(titles, texts)
    query_ids = [encoding.ids for encoding in model.tokenizer.encode_batch(queries, add_special_tokens=False)]
    targets = model.encode_tokens([ids[:254] for ids in query_ids])
    document_ids = [
        encoding.ids[:_DOCUMENT_TOKENS]
        for encoding in model.tokenizer.encode_batch(
            [passage(entry.record.document)[: 16 * _DOCUMENT_TOKENS] for entry in entries],
            add_special_tokens=False,
        )
    ]
    progress("query table: token vectors")
    held = min(_HELD_OUT, len(queries) // 5)
    rows = _token_matrix(document_ids + query_ids[held:], len(prior))
    wanted = np.concatenate((vectors, targets[held:]))
    idf = np.log1p(rows.shape[0] / np.maximum(np.bincount(rows.indices, minlength=len(prior)), 1))
    start = (_PRIOR * idf[:, np.newaxis] * prior).astype(np.float32)
    table = _ridge(rows, wanted, start)
    fitted = QueryTable.quantised(f"{model.identity}+table-r{RECIPE}", table, len(texts), agreement=0.0)
    fitted.agreement = _agreement(fitted, query_ids[:held], targets[:held], vectors)
    return fitted


def pseudo_queries(titles: Sequence[str], texts: Sequence[str], limit: int = MAX_QUERIES) -> list[str]:
    """What people might ask of these texts: titles, sentences, spans, titles with spans, questions, bags of words.

    At most ``limit``.

    The same texts give the same queries, in an order that mixes their kinds.
    """
    random = np.random.default_rng(0)
    made: list[str] = []
    for place in random.permutation(len(texts)):
        if len(made) >= limit:
            break
        title = titles[place]
        words = texts[place].split()
        sentences = [s for s in _SENTENCE.split(texts[place][:2_000]) if 3 <= len(s.split()) <= 40]
        if title:
            made.append(title)
        if sentences:
            made.append(sentences[random.integers(len(sentences))])
        if len(words) >= 3:
            size = int(random.integers(3, 13))
            begin = int(random.integers(max(1, len(words) - size + 1)))
            span = " ".join(words[begin : begin + size])
            question = _QUESTIONS[random.integers(len(_QUESTIONS))]
            bag = " ".join(sorted({words[i] for i in random.integers(len(words), size=5)}))
            made += [span, f"{title} {span}".strip(), f"{question} {span}", bag]
    return [made[place] for place in random.permutation(len(made))[:limit]]


def _token_vectors(model: MiniLM, cache: Path) -> Matrix:
    """What the model says of every token standing alone."""
    path = cache / f"{model.identity}-tokens.npy"
    if not path.exists():
        vectors = model.encode_tokens([[token] for token in range(model.tokenizer.get_vocab_size())])
        draft = path.with_suffix(".draft.npy")
        np.save(draft, vectors.astype(np.float16))
        draft.replace(path)
    loaded: Matrix = np.load(path).astype(np.float32)
    return loaded


def _token_matrix(lists: Sequence[Sequence[int]], tokens: int) -> sparse.csr_array:
    """One row a text: ``1/√n`` at each of its n distinct tokens."""
    distinct = [sorted(set(ids)) for ids in lists]
    counts = np.array([len(ids) for ids in distinct])
    values = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts).astype(np.float32)
    columns = np.array([token for ids in distinct for token in ids], np.int32)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return sparse.csr_array((values, columns, offsets), shape=(len(lists), tokens))


def _ridge(rows: sparse.csr_array, wanted: Matrix, start: Matrix) -> Matrix:
    """Solve ``(XᵀX + λI) E = XᵀY + λE0`` for the tokens that occur; the others keep their start."""
    used = np.unique(rows.indices)
    x = sparse.csr_array(rows[:, used])
    gram = (x.T @ x).tocsr() if len(used) < 4 * x.shape[0] else None
    found = start[used].copy()

    def apply(e: Matrix) -> Matrix:
        product = gram @ e if gram is not None and gram.nnz < 2 * x.nnz else x.T @ (x @ e)
        applied: Matrix = (product + _LAMBDA * e).astype(np.float32)
        return applied

    diagonal = (np.asarray(x.multiply(x).sum(axis=0)).ravel() + _LAMBDA)[:, np.newaxis].astype(np.float32)
    residual = x.T @ wanted + _LAMBDA * found - apply(found)
    scaled = residual / diagonal
    direction = scaled.copy()
    power = (residual * scaled).sum(axis=0)
    for _ in range(_ITERATIONS):
        applied = apply(direction)
        step = power / np.maximum((direction * applied).sum(axis=0), 1e-12)
        found += step * direction
        residual -= step * applied
        scaled = residual / diagonal
        following = (residual * scaled).sum(axis=0)
        direction = scaled + (following / np.maximum(power, 1e-12)) * direction
        power = following
    table = start.copy()
    table[used] = found
    return table


def _agreement(table: QueryTable, ids: Sequence[list[int]], targets: Matrix, vectors: Matrix) -> float:
    """Share of the model's ten nearest documents that are among the table's ten nearest, over these queries."""
    shares = []
    for tokens, target in zip(ids, targets, strict=True):
        guess = table.encode(tokens)
        if guess is None or len(vectors) < 20:
            continue
        ours, theirs = (set(np.argpartition(-(vectors @ q), 10)[:10].tolist()) for q in (guess, target))
        shares.append(len(ours & theirs) / 10)
    return float(np.mean(shares)) if shares else 0.0
