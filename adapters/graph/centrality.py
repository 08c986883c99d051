"""The centrality of each document in the whole graph, by a measure of networkx.

A job computes it after bulk writes and stores it in a file beside the index. Documents written later have none until
the next run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from adapters.engine.segment_set import SegmentSet
from adapters.graph.component import Graph
from adapters.model.errors import Damaged
from adapters.ports.graph import Centrality
from adapters.storage import checked_file
from adapters.storage.followed_file import FollowedFile


class _Stored(msgspec.Struct, frozen=True):
    """The content of the file: ``docnos`` ascending (int64), ``values`` parallel to them (float32, in [0, 1])."""

    name: str
    generation: int
    docnos: bytes
    values: bytes


@dataclass(frozen=True, slots=True)
class _Centralities:
    generation: int
    docnos: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]


_NO_CENTRALITIES = _Centralities(0, np.zeros(0, np.int64), np.zeros(0, np.float32))


class CentralityFile:
    """The centralities stored at ``path``, reread when the file is replaced.

    If the file is deleted, the centralities that were read last remain in use. A file of another measure counts as
    empty.

    :param name: the measure.
    :raises Damaged: on a checksum mismatch.
    """

    def __init__(self, path: Path, name: Centrality) -> None:
        self.path = path
        self.name = name
        self._file = FollowedFile[_Centralities | None](path, self._decode, missing=None)
        # One attribute, which a thread replaces in one step while the event loop reads it.
        self._centralities = _NO_CENTRALITIES
        self.refresh()

    @property
    def generation(self) -> int:
        """The generation of the index that the centralities were computed from; 0 if there are none."""
        return self._centralities.generation

    def refresh(self) -> None:
        """Read the file if it was replaced since the last time.

        :raises Damaged: on a checksum mismatch; the centralities stay as they were.
        """
        self._file.refresh()
        if self._file.value is not None:
            self._centralities = self._file.value

    def compute(self, graph: Graph, segments: SegmentSet, generation: int) -> None:
        """Compute the centralities of all documents and store them. Blocks, for seconds on a large graph.

        :param generation: of the index that ``graph`` and ``segments`` are from.
        """
        if self.name != "none" and len(graph.positions):
            from adapters.graph.centrality_measures import compute  # noqa: PLC0415  # see there

            values = compute(graph, self.name)
            docnos = segments.docnos[graph.positions]
            stored = _Stored(self.name, generation, docnos.tobytes(), values.tobytes())
            checked_file.write(self.path, msgspec.msgpack.encode(stored))
            self.refresh()

    def of(self, docno: int) -> float | None:
        """The centrality of a document in [0, 1], 1 for the most central of all; ``None`` if it has none yet."""
        docnos, values = self._centralities.docnos, self._centralities.values
        index = int(np.searchsorted(docnos, docno))
        return float(values[index]) if index < len(docnos) and docnos[index] == docno else None

    def _decode(self, path: Path) -> _Centralities:
        try:
            stored = msgspec.msgpack.decode(checked_file.read(path), type=_Stored)
        except (Damaged, msgspec.DecodeError) as error:
            raise Damaged("the centralities are damaged: remove their file", str(path)) from error
        if stored.name != self.name:
            return _NO_CENTRALITIES
        return _Centralities(
            stored.generation, np.frombuffer(stored.docnos, np.int64), np.frombuffer(stored.values, np.float32)
        )
