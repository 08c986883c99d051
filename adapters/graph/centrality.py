"""The centrality of each document in the graph of its scope, by a measure of networkx.

A job computes it after bulk writes and stores it in a file beside the index. Documents written later have none until
the next run.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from adapters.engine.segment_set import SegmentSet
from adapters.graph.component import Graph, Graphs
from adapters.model.document import Scope
from adapters.model.errors import Damaged
from adapters.model.filter import access, normal
from adapters.model.protection import Sensitivity, Viewer, visible_levels
from adapters.ports.graph import Centrality
from adapters.storage import checked_file
from adapters.storage.followed_file import FollowedFile

_log = logging.getLogger(__name__)


class _StoredLevel(msgspec.Struct, frozen=True, array_like=True):
    """The documents up to a level: ``docnos`` ascending (int64), ``values`` parallel to them (float32, in [0, 1])."""

    level: Sensitivity
    docnos: bytes
    values: bytes


class _Stored(msgspec.Struct, frozen=True):
    """The content of the file."""

    name: str
    generation: int
    levels: list[_StoredLevel]


@dataclass(frozen=True, slots=True)
class _Centralities:
    """Document numbers and values by level, the lowest first."""

    generation: int
    by_level: Mapping[Sensitivity, tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]]


_NO_CENTRALITIES = _Centralities(0, {})


class CentralityFile:
    """The centralities stored at ``path``, reread when the file is replaced.

    If the file is deleted or damaged, the centralities that were read last remain in use. A file of another measure
    counts as empty.

    :param name: the measure.
    """

    def __init__(self, path: Path, name: Centrality) -> None:
        self.path = path
        self.name = name
        # One attribute, which a thread replaces in one step while the event loop reads it.
        self._centralities = _NO_CENTRALITIES
        self._file = FollowedFile[_Centralities | None](path, self._decode, missing=None)
        self.refresh()

    @property
    def generation(self) -> int:
        """The generation of the index that the centralities were computed from; 0 if there are none."""
        return self._centralities.generation

    def refresh(self) -> None:
        """Read the file if it was replaced since the last time."""
        self._file.refresh()
        if self._file.value is not None:
            self._centralities = self._file.value

    def compute(self, graphs: Graphs, segments: SegmentSet, generation: int) -> None:
        """Compute the centralities of all documents and store them. Blocks, for seconds on a large graph.

        :param generation: of the index that ``graphs`` and ``segments`` are from.
        """
        if self.name == "none" or not segments.count:
            return
        levels = [
            _StoredLevel(level, segments.docnos[graph.positions].tobytes(), self._values(graph, level, segments))
            for level, graph in graphs.by_level.items()
        ]
        checked_file.write(self.path, msgspec.msgpack.encode(_Stored(self.name, generation, levels)))
        self.refresh()

    def _values(self, graph: Graph, level: Sensitivity, segments: SegmentSet) -> bytes:
        """The centrality of each document node. It depends on nothing outside the scope of the document."""
        from adapters.graph.centrality_measures import compute  # noqa: PLC0415  # see there

        values = np.zeros(len(graph.positions), np.float32)
        for (tenant, environment), vocabulary in graph.scopes.items():
            mask = segments.mask(normal(access(Scope(tenant, environment), Viewer(level))))
            documents = np.flatnonzero(mask.flags[graph.positions])
            names = np.fromiter(vocabulary.nodes.values(), np.int64, len(vocabulary.nodes))
            values[documents] = compute(graph.adjacency, documents, names, self.name)
        return values.tobytes()

    def of(self, docno: int, clearance: Sensitivity) -> float | None:
        """The centrality of a document in [0, 1], 1 for the most central that may be seen of its scope; ``None`` if it
        has none yet."""
        by_level = self._centralities.by_level
        level = next((each for each in visible_levels(clearance) if each in by_level), None)
        if level is None:
            return None
        docnos, values = by_level[level]
        index = int(np.searchsorted(docnos, docno))
        return float(values[index]) if index < len(docnos) and docnos[index] == docno else None

    def _decode(self, path: Path) -> _Centralities:
        try:
            stored = msgspec.msgpack.decode(checked_file.read(path), type=_Stored)
        except (Damaged, msgspec.DecodeError) as error:
            _log.error("the centralities are damaged, and are computed again: %s: %s", path, error)
            return self._centralities
        if stored.name != self.name:
            return _NO_CENTRALITIES
        return _Centralities(
            stored.generation,
            {
                each.level: (np.frombuffer(each.docnos, np.int64), np.frombuffer(each.values, np.float32))
                for each in stored.levels
            },
        )
