"""all-MiniLM-L6-v2 on the CPU, in int8.

Wang et al.: "MiniLM: Deep Self-Attention Distillation for Task-Agnostic Compression of Pre-Trained
Transformers", 2020; fine-tuned by sentence-transformers. 384 numbers a vector.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import anyio.to_thread
import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer

from adapters.embed import build, weights
from adapters.port import Matrix, Vector

_WINDOW = 256
"""Tokens that the model was trained on, its two marks included."""
_MAX_WINDOWS = 4
"""Windows of a long text that are read; what is behind them is found by its words."""
_POOLING = "t"
"""How windows become one vector; another letter whenever that changes."""
_BATCH_TOKENS = 4_096
_BEGIN, _END = 101, 102
"""[CLS] and [SEP]."""


class MiniLM:
    """Encodes documents, blocking and on all cores; and queries, one at a time, in a thread.

    :param cache: folder for the model, built there on first use.
    :raises Unavailable: if no package with the weights is installed.
    """

    dimension = 384

    def __init__(self, cache: Path) -> None:
        found = weights.find()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # parallel by text, not within one
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(build.model(found, cache)), options, providers=["CPUExecutionProvider"]
        )
        self.tokenizer = Tokenizer.from_file(str(found.tokenizer))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self._threads = os.cpu_count() or 1
        self._lane = anyio.CapacityLimiter(1)

    @property
    def identity(self) -> str:
        """Weights and recipe."""
        return f"minilm-l6-int8-r{build.RECIPE}{_POOLING}-{weights.SHA256[:8]}"

    async def encode(self, text: str) -> Vector:
        """A query's vector; some 2 ms in a thread, one query after the other."""
        ids = self._windows(text)[0]
        return await anyio.to_thread.run_sync(self._one, ids, limiter=self._lane)

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """One row a text. A long text is the mean of its windows, each weighing as much as it has tokens."""
        windows = [self._windows(text) for text in texts]
        flat = [window for each in windows for window in each]
        vectors = self.encode_tokens(flat) * np.array([[max(len(each), 1)] for each in flat], np.float32)
        owner = np.repeat(np.arange(len(texts)), [len(each) for each in windows])
        pooled = np.zeros((len(texts), self.dimension), np.float32)
        np.add.at(pooled, owner, vectors)
        unit: Matrix = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return unit

    def encode_tokens(self, windows: Sequence[Sequence[int]]) -> Matrix:
        """One row for each list of at most 254 token ids, in order."""
        # In order of length, so that a batch is hardly padded.
        order = sorted(range(len(windows)), key=lambda index: -len(windows[index]))
        vectors = np.zeros((len(windows), self.dimension), np.float32)
        with ThreadPoolExecutor(self._threads) as pool:
            batches = list(_batches(order, windows))
            runs = pool.map(self._run, ([windows[index] for index in batch] for batch in batches))
            for batch, result in zip(batches, runs, strict=True):
                vectors[batch] = result
        return vectors

    def _windows(self, text: str) -> list[list[int]]:
        # No token is longer than the longest word piece allows, so this much text fills every window.
        ids = self.tokenizer.encode(text[: _WINDOW * _MAX_WINDOWS * 16], add_special_tokens=False).ids
        size = _WINDOW - 2
        return [ids[start : start + size] for start in range(0, len(ids), size)][:_MAX_WINDOWS] or [[]]

    def _one(self, ids: list[int]) -> Vector:
        vector: Vector = self._run([ids])[0]
        return vector

    def _run(self, windows: Sequence[Sequence[int]]) -> Matrix:
        longest = max(map(len, windows)) + 2
        ids = np.zeros((len(windows), longest), np.int32)
        mask = np.zeros_like(ids)
        for row, window in enumerate(windows):
            ids[row, : len(window) + 2] = (_BEGIN, *window, _END)
            mask[row, : len(window) + 2] = 1
        vectors: npt.NDArray[np.float32] = self._session.run(["vectors"], {"input_ids": ids, "attention_mask": mask})[0]
        return vectors


def _batches(order: Sequence[int], windows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    batch: list[int] = []
    for index in order:
        if batch and (len(batch) + 1) * (len(windows[batch[0]]) + 2) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
