"""all-MiniLM-L6-v2 on the CPU, in int8.

Wang et al.: "MiniLM: Deep Self-Attention Distillation for Task-Agnostic Compression of Pre-Trained
Transformers", 2020; fine-tuned by sentence-transformers. A vector has 384 numbers.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import onnxruntime

from adapters.encoders import model_files
from adapters.encoders.tokens import Tokens
from adapters.ports.encoders import MAX_QUERY_CHARS, MAX_QUERY_TOKENS, EncodedText, Matrix, Vector

_WINDOW = 256
"""Maximum number of tokens of a text in the model's training, [CLS] and [SEP] included."""
_OVERLAP = 64
"""Tokens that a window has in common with the next one, so that a sentence is in one of them as a whole."""
_MAX_TITLE = 64
"""Tokens of a title that each window of a long text begins with."""
_MAX_WINDOWS = 32
"""Later windows of a long text, from some 4,500 words on, are not encoded; keyword search still finds them."""
_WINDOWS = "h"
"""Part of the identity; it changes whenever texts are cut into other windows."""
_BATCH_TOKENS = 512
"""Maximum tokens of documents in one run. Larger runs are slower, and the process does not free their memory."""
_BEGIN, _END = 101, 102
"""[CLS] and [SEP]."""
_NICENESS = 10
"""Niceness of the threads that encode documents, so that queries of the same process run first."""


class MiniLM:
    """Encodes documents (on all cores) and queries (on one).

    :raises Unavailable: if the files of the model are missing or damaged.
    """

    dimension = 384
    encodes_texts = True

    def __init__(self) -> None:
        self._files = model_files.read()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # parallel by text, not within one
        options.log_severity_level = 3  # errors
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        self._session = onnxruntime.InferenceSession(
            str(self._files.model),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=["SkipLayerNormFusion"],  # slower than its parts: see model_build.py
        )
        self.tokens = Tokens(self._files)
        self._threads = os.cpu_count() or 1

    @property
    def identity(self) -> str:
        """See :class:`adapters.ports.TextEncoder`."""
        return f"{self._files.name}{_WINDOWS}-{self._files.weights[:8]}"

    def encode(self, text: str) -> Vector:
        """See :class:`adapters.ports.QueryEncoder`. Takes 0.1 ms for each token, on one core.

        Queries are never encoded together: the quantisation takes its range from all texts of a run, so the vector of
        a query would depend on the others.
        """
        ids = self.tokens.tokenizer.encode(text[:MAX_QUERY_CHARS], add_special_tokens=False).ids[:MAX_QUERY_TOKENS]
        vector: Vector = self._run(_inputs([ids]))[0]
        return vector

    def encode_texts(self, texts: Sequence[EncodedText]) -> list[Matrix]:
        """See :class:`adapters.ports.TextEncoder`."""
        windows = [self._windows(each) for each in texts]
        vectors = self.encode_tokens([window for each in windows for window in each])
        ends = np.cumsum([len(each) for each in windows])
        return np.split(vectors, ends[:-1])

    def encode_tokens(self, windows: Sequence[Sequence[int]]) -> Matrix:
        """One unit row for each list of at most 254 token ids, in order."""
        # Sorted by length, so that the texts of a batch need little padding.
        order = sorted(range(len(windows)), key=lambda index: -len(windows[index]))
        vectors = np.zeros((len(windows), self.dimension), np.float32)
        with ThreadPoolExecutor(self._threads, initializer=_lower_priority) as pool:
            batches = list(_batches(order, windows))
            # Prepared in this thread: a low-priority thread that is preempted while it has the GIL blocks all others.
            inputs = [_inputs([windows[index] for index in batch]) for batch in batches]
            for batch, result in zip(batches, pool.map(self._run, inputs), strict=True):
                vectors[batch] = result
        return vectors

    def _windows(self, each: EncodedText) -> list[list[int]]:
        # 16 characters for each token: enough text to fill every window.
        characters = _WINDOW * 16
        # Not ``encode``, which does not release the GIL: a long text would block the event loop for 9 ms.
        split = self.tokens.tokenizer.encode_batch_fast(
            [
                each.beginning[:characters],
                each.text[: characters * _MAX_WINDOWS],
                each.before[-characters:],
                each.after[:characters],
            ],
            add_special_tokens=False,
        )
        heading, body, before, after = (part.ids for part in split)
        if len(heading) + len(body) > _WINDOW - 2:
            heading = heading[:_MAX_TITLE]
        size = _WINDOW - 2 - len(heading)
        if (room := size - len(body)) > 0:
            used = min(len(before), max(room // 2, room - len(after)))
            body = before[len(before) - used :] + body + after[: room - used]
        starts = range(0, max(len(body) - _OVERLAP, 1), size - _OVERLAP)  # what is left after the last is in it, too
        return [heading + body[start : start + size] for start in starts][:_MAX_WINDOWS]

    def _run(self, inputs: Mapping[str, npt.NDArray[np.int32]]) -> Matrix:
        vectors: npt.NDArray[np.float32] = self._session.run(["vectors"], inputs)[0]
        return vectors


def _inputs(windows: Sequence[Sequence[int]]) -> dict[str, npt.NDArray[np.int32]]:
    """The inputs of the model: a row for each window, padded to the longest."""
    longest = max(map(len, windows)) + 2
    ids = np.zeros((len(windows), longest), np.int32)
    mask = np.zeros_like(ids)
    for row, window in enumerate(windows):
        ids[row, : len(window) + 2] = (_BEGIN, *window, _END)
        mask[row, : len(window) + 2] = 1
    return {"input_ids": ids, "attention_mask": mask}


def _lower_priority() -> None:
    """Lower the priority of this thread, where the operating system has priorities of single threads."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        # The process may have a lower priority already, and only an administrator may raise it.
        os.setpriority(os.PRIO_PROCESS, thread, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))


def _batches(order: Sequence[int], windows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    batch: list[int] = []
    for index in order:
        if batch and (len(batch) + 1) * (len(windows[batch[0]]) + 2) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
