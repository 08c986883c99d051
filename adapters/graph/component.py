"""The files of the embedded graph: documents, names of entities, and the edges among them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from adapters.engine.component import Delta
from adapters.engine.segment_set import SegmentSet
from adapters.graph.join import count_documents, join_graphs
from adapters.graph.link_types import TypeStrengths
from adapters.graph.segment_edges import Name, SegmentGraph, segment_graph
from adapters.ports.graph import LinkStrength
from adapters.storage import files
from fusion.random_walk import Adjacency


class _StoredStrengths(msgspec.Struct, frozen=True):
    """The strengths of links: those that were set, and the resulting ones by scope (tenant, environment)."""

    chosen: dict[str, tuple[float, float]]
    by_scope: list[tuple[str, str, list[LinkStrength]]]


class _ScopeWords(msgspec.Struct, frozen=True, array_like=True):
    """The number of documents of a scope, and of those that contain each word."""

    tenant: str
    environment: str
    documents: int
    frequency: dict[str, int]


@dataclass(frozen=True, slots=True)
class Graph:
    """The whole graph. Its nodes are the living documents by position, then the names.

    :param positions: by document node, its position in the segment set; ascending.
    :param name_count: number of nodes that are names.
    :param scopes: the vocabulary of each (tenant, environment).
    :param strengths: of the link types of each (tenant, environment).
    :param chosen: the strengths that were set when the graph was built.
    """

    adjacency: Adjacency
    positions: npt.NDArray[np.int64]
    name_count: int
    scopes: dict[tuple[str, str], Vocabulary]
    strengths: Mapping[tuple[str, str], Sequence[LinkStrength]] = field(default_factory=dict)
    chosen: TypeStrengths = field(default_factory=dict)


@dataclass(slots=True)
class Vocabulary:
    """The names and words of one scope. They are not shared, so one tenant's writes never change another's results.

    :param nodes: node by name.
    :param frequency: by word, the number of documents that contain it.
    :param documents: number of documents of the scope.
    """

    nodes: dict[str, int] = field(default_factory=dict)
    frequency: dict[str, int] = field(default_factory=dict)
    documents: int = 0


class GraphComponent:
    """The files: one for each segment, named after it, and the whole graph in compressed sparse rows.

    :param chosen: strengths of link types that an operator has set; they override the derived ones.
    """

    name = "graph"
    format = "names-6"

    def __init__(self, chosen: TypeStrengths | None = None) -> None:
        self._chosen = dict(chosen or {})

    def build(self, target: Path, previous: Path | None, segments: SegmentSet, delta: Delta) -> None:
        """Read the new segments, link the files of the others, then join all of them."""
        del delta
        graphs = []
        for segment in segments.segments:
            file = f"{segment.name}.part"
            if previous and (previous / file).exists():
                files.link_or_copy(previous / file, target / file)
            else:
                (target / file).write_bytes(msgspec.msgpack.encode(segment_graph(segment)))
            graphs.append(msgspec.msgpack.decode((target / file).read_bytes(), type=SegmentGraph))
        names, adjacency, strengths = join_graphs(graphs, segments, self._chosen)
        frequency: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for graph in graphs:
            for tenant, environment, counts in graph.words:
                frequency[tenant, environment].update(counts)
        (target / "names.msgpack").write_bytes(msgspec.msgpack.encode(names))
        documents = count_documents(graphs, segments)
        words = [_ScopeWords(*scope, documents[scope], counts) for scope, counts in frequency.items()]
        (target / "words.msgpack").write_bytes(msgspec.msgpack.encode(words))
        stored = _StoredStrengths(self._chosen, [(*scope, each) for scope, each in strengths.items()])
        (target / "strengths.msgpack").write_bytes(msgspec.msgpack.encode(stored))
        np.save(target / "offsets.npy", adjacency.offsets)
        np.save(target / "targets.npy", adjacency.targets)
        np.save(target / "weights.npy", adjacency.weights)

    def open(self, folder: Path, segments: SegmentSet) -> Graph:
        """Map the edges and load the names."""
        offsets, targets, weights = (
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("offsets", "targets", "weights")
        )
        names = msgspec.msgpack.decode((folder / "names.msgpack").read_bytes(), type=list[Name])
        stored = msgspec.msgpack.decode((folder / "strengths.msgpack").read_bytes(), type=_StoredStrengths)
        return Graph(
            # As plain arrays: indexing a numpy.memmap costs 20 µs more, for the same memory.
            Adjacency(np.asarray(offsets), np.asarray(targets), np.asarray(weights)),
            np.flatnonzero(segments.live),
            len(names),
            _vocabularies(names, (folder / "words.msgpack").read_bytes(), segments.count),
            {(tenant, environment): strengths for tenant, environment, strengths in stored.by_scope},
            stored.chosen,
        )

    def is_outdated(self, graph: Graph) -> bool:
        """Whether other strengths of links were set when the graph was built."""
        return dict(graph.chosen) != self._chosen

    def count(self, index: Graph, segments: SegmentSet) -> int:
        """Number of document nodes."""
        del segments
        return len(index.positions)

    def fragment_count(self, index: Graph) -> int:
        """Returns 1: every build joins all segments."""
        del index
        return 1


def _vocabularies(names: Sequence[Name], words: bytes, document_count: int) -> dict[tuple[str, str], Vocabulary]:
    scopes: dict[tuple[str, str], Vocabulary] = defaultdict(Vocabulary)
    for node, (tenant, environment, name) in enumerate(names, start=document_count):
        scopes[tenant, environment].nodes[name] = node
    for each in msgspec.msgpack.decode(words, type=list[_ScopeWords]):
        vocabulary = scopes[each.tenant, each.environment]
        vocabulary.frequency, vocabulary.documents = each.frequency, each.documents
    return dict(scopes)
