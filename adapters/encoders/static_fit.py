"""Fitting a static query encoder to a corpus. It needs no labelled data.

Ridge regression: token vectors ``E`` that minimise ``sum_i |x_i E - y_i|² + λ|E - E0|²``. A row ``x_i`` is the bag of
tokens of a document or of a generated query, and ``y_i`` is the document's stored vector or the model's vector of the
query. The normal equations are solved by conjugate gradients with a diagonal preconditioner (Shewchuk 1994, appendix
B3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from adapters.encoders.minilm import MiniLM
from adapters.encoders.static_encoder import StaticQueryEncoder
from adapters.model.document import passage
from adapters.ports.encoders import Matrix, Vector
from adapters.ports.replica import VectorRecord

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RECIPE = 1
"""Part of the identity: increased whenever the same corpus would give another encoder."""

MAX_DOCUMENTS = 20_000
MAX_QUERIES = 8_000
_TEST_QUERIES = 300
_LAMBDA = 0.3
_PRIOR = 0.1
_ITERATIONS = 20
_DOCUMENT_TOKENS = 256
_QUERY_TOKENS = 254

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n{2,}")
_QUESTIONS = ("what is", "how does", "who is", "how to", "why does", "where is")


def fit(
    model: MiniLM, sample: Sequence[VectorRecord], progress: Callable[[str], None] = lambda _: None, *, cache: Path
) -> StaticQueryEncoder:
    """Fit a static query encoder to a sample of a corpus with its stored vectors.

    :param cache: folder of the model's vectors of single tokens, which are the same for every corpus.
    :param progress: called with the name of each step when it begins.
    """
    titles = [each.record.document.title for each in sample]
    texts = [each.record.document.text for each in sample]
    vectors = np.stack([_mean(each.vectors) for each in sample])
    progress("static encoder: single tokens")
    prior = _token_vectors(model, cache)
    progress("static encoder: generated queries")
    queries = pseudo_queries(titles, texts)
    tokenizer = model.tokens.tokenizer
    query_ids = [encoding.ids for encoding in tokenizer.encode_batch(queries, add_special_tokens=False)]
    query_vectors = model.encode_tokens([ids[:_QUERY_TOKENS] for ids in query_ids])
    passages = [passage(each.record.document)[: 16 * _DOCUMENT_TOKENS] for each in sample]
    document_ids = [
        encoding.ids[:_DOCUMENT_TOKENS] for encoding in tokenizer.encode_batch(passages, add_special_tokens=False)
    ]
    progress("static encoder: token vectors")
    test_count = min(_TEST_QUERIES, len(queries) // 5)
    rows = _token_matrix(document_ids + query_ids[test_count:], len(prior))
    targets = np.concatenate((vectors, query_vectors[test_count:]))
    idf = np.log1p(rows.shape[0] / np.maximum(np.bincount(rows.indices, minlength=len(prior)), 1))
    start = (_PRIOR * idf[:, np.newaxis] * prior).astype(np.float32)
    identity = f"{model.identity}+table-r{RECIPE}"
    fitted = StaticQueryEncoder.quantised(identity, _ridge(rows, targets, start), len(texts), agreement=0.0)
    fitted.agreement = _agreement(fitted, query_ids[:test_count], query_vectors[:test_count], vectors)
    return fitted


def _mean(vectors: Matrix) -> Vector:
    """The direction of the mean of the windows of a document: its tokens are one bag."""
    mean: Vector = vectors.mean(axis=0)
    return mean / np.linalg.norm(mean)


def pseudo_queries(titles: Sequence[str], texts: Sequence[str], limit: int = MAX_QUERIES) -> list[str]:
    """Generate queries for these texts: titles, sentences, spans, titles with spans, questions, bags of words.

    The same texts give the same queries, with the kinds in a mixed order.

    :param titles: parallel to ``texts``; empty for a text without a title.
    :param limit: maximum number of queries.
    """
    random = np.random.default_rng(0)
    queries: list[str] = []
    for index in random.permutation(len(texts)):
        if len(queries) >= limit:
            break
        title = titles[index]
        words = texts[index].split()
        sentences = [s for s in _SENTENCE.split(texts[index][:2_000]) if 3 <= len(s.split()) <= 40]
        if title:
            queries.append(title)
        if sentences:
            queries.append(sentences[random.integers(len(sentences))])
        if len(words) >= 3:
            size = int(random.integers(3, 13))
            begin = int(random.integers(max(1, len(words) - size + 1)))
            span = " ".join(words[begin : begin + size])
            question = _QUESTIONS[random.integers(len(_QUESTIONS))]
            bag = " ".join(sorted({words[i] for i in random.integers(len(words), size=5)}))
            queries += [span, f"{title} {span}".strip(), f"{question} {span}", bag]
    return [queries[index] for index in random.permutation(len(queries))[:limit]]


def _token_vectors(model: MiniLM, cache: Path) -> Matrix:
    """The model's vector of every single token; shape (tokens, dimension). Cached in a file."""
    path = cache / f"{model.identity}-tokens.npy"
    if not path.exists():
        vectors = model.encode_tokens([[token] for token in range(model.tokens.tokenizer.get_vocab_size())])
        cache.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft.npy")
        np.save(draft, vectors.astype(np.float16))
        draft.replace(path)
    loaded: Matrix = np.load(path).astype(np.float32)
    return loaded


def _token_matrix(lists: Sequence[Sequence[int]], tokens: int) -> csr_array:
    """One row for each list of token ids: ``1/√n`` at each of its n distinct tokens; shape (lists, tokens)."""
    from scipy.sparse import csr_array  # noqa: PLC0415  # a tenth of the start of a process, which rarely fits

    distinct = [sorted(set(ids)) for ids in lists]
    counts = np.array([len(ids) for ids in distinct])
    values = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts).astype(np.float32)
    columns = np.array([token for ids in distinct for token in ids], np.int32)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return csr_array((values, columns, offsets), shape=(len(lists), tokens))


def _ridge(rows: csr_array, targets: Matrix, start: Matrix) -> Matrix:
    """Solve ``(XᵀX + λI) E = XᵀY + λE0`` for the tokens that occur; for the others ``E`` is ``E0``.

    :param rows: X, shape (texts, tokens).
    :param targets: Y, shape (texts, dimension).
    :param start: E0, shape (tokens, dimension).
    """
    used = np.unique(rows.indices)
    x = rows[:, used].tocsr()
    gram = (x.T @ x).tocsr() if len(used) < 4 * x.shape[0] else None
    solution = start[used].copy()

    def apply(e: Matrix) -> Matrix:
        product = gram @ e if gram is not None and gram.nnz < 2 * x.nnz else x.T @ (x @ e)
        applied: Matrix = (product + _LAMBDA * e).astype(np.float32)
        return applied

    diagonal = (np.asarray(x.multiply(x).sum(axis=0)).ravel() + _LAMBDA)[:, np.newaxis].astype(np.float32)
    residual = x.T @ targets + _LAMBDA * solution - apply(solution)
    scaled = residual / diagonal
    direction = scaled.copy()
    power = (residual * scaled).sum(axis=0)
    for _ in range(_ITERATIONS):
        applied = apply(direction)
        step = power / np.maximum((direction * applied).sum(axis=0), 1e-12)
        solution += step * direction
        residual -= step * applied
        scaled = residual / diagonal
        next_power = (residual * scaled).sum(axis=0)
        direction = scaled + (next_power / np.maximum(power, 1e-12)) * direction
        power = next_power
    vectors = start.copy()
    vectors[used] = solution
    return vectors


def _agreement(encoder: StaticQueryEncoder, ids: Sequence[list[int]], targets: Matrix, vectors: Matrix) -> float:
    """The fraction of the model's ten nearest documents that are among the encoder's ten, over these queries.

    :param targets: the model's vectors of the queries, parallel to ``ids``.
    :param vectors: of the documents.
    """
    fractions = []
    for tokens, target in zip(ids, targets, strict=True):
        encoded = encoder.encode(tokens)
        if encoded is None or len(vectors) < 20:
            continue
        by_encoder, by_model = (set(np.argpartition(-(vectors @ q), 10)[:10].tolist()) for q in (encoded, target))
        fractions.append(len(by_encoder & by_model) / 10)
    return float(np.mean(fractions)) if fractions else 0.0
