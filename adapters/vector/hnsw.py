"""HNSW graphs over 8-bit vectors: faiss builds and stores them, :mod:`adapters.vector.hnsw_kernel` searches them.

It returns the results of faiss in three fifths of the time. Where the package was built without a C++ compiler, faiss
searches. docs/decisions/0032-search-of-hnsw.md has the measurements.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import faiss
import numpy as np
import numpy.typing as npt

from adapters.engine.columns import Flags
from adapters.ports.encoders import Vector

try:
    from adapters.vector.hnsw_kernel import nearest

    _IS_COMPILED = True
except ImportError:  # the package was built without a C++ compiler
    _IS_COMPILED = False

_NEIGHBOURS = 32
_EF_CONSTRUCTION = 200
_MAX_CODE = 255
_MAX_NUMBER, _MAX_SCORE = 2**15 - 1, 2**31 - 1
_ALL: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)

Rows: TypeAlias = npt.NDArray[np.int64]


def build(vectors: npt.NDArray[np.float32], path: Path, earlier: Iterable[Path] = ()) -> None:
    """Write the graph of some vectors, one row each, to a file.

    :param vectors: of length 1.
    :param earlier: graphs of other vectors. One whose rows are the first half of ``vectors``, or more of them, is
        extended, which takes less time.
    """
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    index = next((index for each in earlier if (index := _of_first_rows(each, vectors))), None)
    if index is None:
        quantizer = faiss.ScalarQuantizer.QT_8bit
        index = faiss.IndexHNSWSQ(vectors.shape[1], quantizer, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = _EF_CONSTRUCTION
        index.train(vectors)
    index.add(vectors[index.ntotal :])
    faiss.write_index(index, str(path))


def _of_first_rows(path: Path, vectors: npt.NDArray[np.float32]) -> Any:
    """The graph in a file, if its rows are at least half of some vectors, and their first; else ``None``."""
    index = faiss.read_index(str(path))
    count = index.ntotal
    if index.d != vectors.shape[1] or not count <= len(vectors) <= 2 * count:
        return None
    storage = faiss.downcast_index(index.storage)
    is_same = np.array_equal(storage.sa_encode(vectors[:count]).ravel(), _array(storage.codes))
    return index if is_same else None


class HnswGraph:
    """A graph in a file that :func:`build` has written. It is mapped: all processes use the same memory."""

    def __init__(self, path: Path) -> None:
        self._index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        graph, storage = self._index.hnsw, faiss.downcast_index(self._index.storage)
        self._neighbours, self._offsets = _array(graph.neighbors), _array(graph.offsets)
        self._level_starts = _array(graph.cum_nneighbor_per_level)
        self._entry, self._top_level = graph.entry_point, graph.max_level
        self._codes = _array(storage.codes)
        # A code c means minimum + (c + .5) / 255 * range, in each dimension; the constants change no order.
        self._ranges = _array(storage.sq.trained)[self._index.d :].copy()

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def nearest(self, vector: Vector, count: int, width: int, allowed: Flags | None = None) -> Rows:
        """The rows whose 8-bit vectors have the largest inner products with a vector, as far as they are found.

        :param count: of rows, at most ``width``; fewer are returned if fewer are reached.
        :param width: number of candidates (``ef``), of which each may be a result.
        :param allowed: by row, whether it may be a result; all by default.
        """
        if not _IS_COMPILED:
            return self.nearest_by_faiss(vector, count, width, allowed)
        flags = _ALL if allowed is None else allowed.view(np.uint8)
        return nearest(
            self._in_16_bits(vector),
            self._codes,
            self._neighbours,
            self._offsets,
            self._level_starts,
            self._entry,
            self._top_level,
            flags,
            count,
            width,
        )

    def nearest_by_faiss(self, vector: Vector, count: int, width: int, allowed: Flags | None = None) -> Rows:
        """The results of :meth:`nearest`, searched by faiss."""
        selector = None
        if allowed is not None:
            selector = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
            # All rows are candidates there, so that more of them are needed.
            width = min(width * len(allowed) // max(int(allowed.sum()), 1), len(allowed))
        parameters = faiss.SearchParametersHNSW(efSearch=width, sel=selector)
        faiss.omp_set_num_threads(1)  # a second thread would only spin
        _, found = self._index.search(vector[np.newaxis], count, params=parameters)
        rows: Rows = found[0][found[0] >= 0]
        return rows

    def _in_16_bits(self, vector: Vector) -> npt.NDArray[np.int16]:
        """A vector in units of the codes, scaled so that its products with codes are as large as they may be."""
        scaled = vector * self._ranges
        largest = float(np.abs(scaled).max())
        limit = min(_MAX_NUMBER, _MAX_SCORE // (_MAX_CODE * len(scaled)))
        numbers: npt.NDArray[np.int16] = np.rint(scaled * (limit / largest if largest else 0.0)).astype(np.int16)
        return numbers


def _array(vector: Any) -> npt.NDArray[Any]:
    """A vector of faiss as an array, without copying it: only for as long as its index exists."""
    array: npt.NDArray[Any] = faiss.rev_swig_ptr(vector.data(), vector.size())
    return array
