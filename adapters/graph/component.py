"""The files of the embedded graph: documents, names of entities, and the edges among them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from adapters import files
from adapters.document import SENSITIVITIES, Scope, passage
from adapters.embedded.component import Delta
from adapters.embedded.segment import Segment
from adapters.embedded.segment_set import SegmentSet
from adapters.filter import access, normal
from adapters.graph.edges import entity_names, link_weight
from adapters.graph.names import words
from fusion.rank_fields import Ints
from fusion.walk import Adjacency

Name = tuple[str, str, str]
"""(tenant, environment, normalised name). Names are never shared between scopes, so no walk can cross them."""
_LinkTarget = tuple[str, str, str]
"""(tenant, environment, id) of a document."""


class _SegmentGraph(msgspec.Struct, frozen=True):
    """The names, mentions, links and word counts of one segment. Rows are the segment's; a mention is (row, index).

    ``mention_names`` are indices into ``names``; ``words`` has the number of documents with each word, by scope.
    """

    names: list[Name]
    mention_rows: bytes
    mention_names: bytes
    link_rows: bytes
    link_targets: list[_LinkTarget]
    link_weights: bytes
    words: list[tuple[str, str, dict[str, int]]]


@dataclass(frozen=True, slots=True)
class Graph:
    """The whole graph. Its nodes are the living documents by position, then the names.

    :param positions: by document node, its position in the segment set; ascending.
    :param name_count: number of nodes that are names.
    :param scopes: the vocabulary of each (tenant, environment).
    """

    adjacency: Adjacency
    positions: npt.NDArray[np.int64]
    name_count: int
    scopes: dict[tuple[str, str], Vocabulary]


@dataclass(slots=True)
class Vocabulary:
    """The names and words of one scope. Each has its own, so that one tenant's writes never move another's results.

    :param nodes: node by name.
    :param frequency: by word, the number of documents that contain it.
    :param documents: number of documents of the scope.
    """

    nodes: dict[str, int] = field(default_factory=dict)
    frequency: dict[str, int] = field(default_factory=dict)
    documents: int = 0


class GraphComponent:
    """The files: one for each segment, named after it, and the whole graph in compressed sparse rows."""

    name = "graph"
    format = "names-3"

    def build(self, target: Path, previous: Path | None, segments: SegmentSet, delta: Delta) -> None:
        """Read the new segments, link the files of the others, then join all of them."""
        del delta
        graphs = []
        for segment in segments.segments:
            file = f"{segment.name}.part"
            if previous and (previous / file).exists():
                files.link_or_copy(previous / file, target / file)
            else:
                (target / file).write_bytes(msgspec.msgpack.encode(_segment_graph(segment)))
            graphs.append(msgspec.msgpack.decode((target / file).read_bytes(), type=_SegmentGraph))
        names, adjacency = _join(graphs, segments)
        frequency: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for graph in graphs:
            for tenant, environment, counts in graph.words:
                frequency[tenant, environment].update(counts)
        (target / "names.msgpack").write_bytes(msgspec.msgpack.encode(names))
        word_counts = [(*scope, frequency[scope]) for scope in frequency]
        (target / "words.msgpack").write_bytes(msgspec.msgpack.encode(word_counts))
        np.save(target / "offsets.npy", adjacency.offsets)
        np.save(target / "targets.npy", adjacency.targets)
        np.save(target / "weights.npy", adjacency.weights)

    def open(self, folder: Path, segments: SegmentSet) -> Graph:
        """Map the edges and load the names."""
        offsets, targets, weights = (
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("offsets", "targets", "weights")
        )
        names = msgspec.msgpack.decode((folder / "names.msgpack").read_bytes(), type=list[Name])
        return Graph(
            # As plain arrays: indexing a numpy.memmap costs 20 µs more, for the same memory.
            Adjacency(np.asarray(offsets), np.asarray(targets), np.asarray(weights)),
            np.flatnonzero(segments.live),
            len(names),
            _vocabularies(names, (folder / "words.msgpack").read_bytes(), segments),
        )

    def count(self, index: Graph, segments: SegmentSet) -> int:
        """Nodes that are documents."""
        del segments
        return len(index.positions)

    def fragment_count(self, index: Graph) -> int:
        """One: every build joins all segments."""
        del index
        return 1


def _vocabularies(names: Sequence[Name], words: bytes, segments: SegmentSet) -> dict[tuple[str, str], Vocabulary]:
    scopes: dict[tuple[str, str], Vocabulary] = defaultdict(Vocabulary)
    for node, (tenant, environment, name) in enumerate(names, start=segments.count):
        scopes[tenant, environment].nodes[name] = node
    for tenant, environment, counts in msgspec.msgpack.decode(words, type=list[tuple[str, str, dict[str, int]]]):
        scopes[tenant, environment].frequency = counts
    for (tenant, environment), vocabulary in scopes.items():
        all_documents = normal(access(Scope(tenant, environment), SENSITIVITIES[-1]))
        vocabulary.documents = segments.mask(all_documents).count
    return dict(scopes)


def _segment_graph(segment: Segment) -> _SegmentGraph:
    numbers: dict[Name, int] = {}
    mention_rows, mention_names = [], []
    link_rows, link_targets, link_weights = [], [], []
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in range(len(segment)):
        record = segment.record(row)
        document = record.document
        counts[record.tenant, record.environment].update(set(words(passage(document))))
        for name in entity_names(record):
            mention_rows.append(row)
            mention_names.append(numbers.setdefault((record.tenant, record.environment, name), len(numbers)))
        for each in document.links:
            link_rows.append(row)
            link_targets.append((record.tenant, record.environment, each.target))
            link_weights.append(link_weight(each))
    return _SegmentGraph(
        names=list(numbers),
        mention_rows=np.asarray(mention_rows, np.int32).tobytes(),
        mention_names=np.asarray(mention_names, np.int32).tobytes(),
        link_rows=np.asarray(link_rows, np.int32).tobytes(),
        link_targets=link_targets,
        link_weights=np.asarray(link_weights, np.float32).tobytes(),
        words=[(*scope, dict(counts[scope])) for scope in counts],
    )


def _join(graphs: Sequence[_SegmentGraph], segments: SegmentSet) -> tuple[list[Name], Adjacency]:
    """The names and edges of all segments as one undirected graph whose rows sum to 1."""
    node_by_position = np.cumsum(segments.live) - 1
    numbers: dict[Name, int] = {}
    mentions: list[tuple[Ints, Ints]] = []
    links: list[tuple[Ints, Ints, npt.NDArray[np.float32]]] = []
    for graph, base in zip(graphs, segments.bases[:-1], strict=True):
        positions = np.frombuffer(graph.mention_rows, np.int32) + base
        mentioned = np.frombuffer(graph.mention_names, np.int32)
        alive = segments.live[positions]
        used = np.unique(mentioned[alive])
        number = np.zeros(len(graph.names), np.int64)
        number[used] = [numbers.setdefault(graph.names[index], len(numbers)) for index in used]
        mentions.append((node_by_position[positions[alive]], number[mentioned[alive]]))
        links.append(_resolved_links(graph, int(base), segments, node_by_position))
    documents = segments.count
    mentioning = np.concatenate([np.zeros(0, np.int64), *(nodes for nodes, _ in mentions)])
    names = np.concatenate([np.zeros(0, np.int64), *(named for _, named in mentions)])
    degree = np.bincount(names, minlength=len(numbers)).astype(np.float32)
    sources = np.concatenate([mentioning, *(nodes for nodes, _, _ in links)])
    targets = np.concatenate([names + documents, *(nodes for _, nodes, _ in links)])
    weights = np.concatenate([degree[names] ** -0.5, *(weights for _, _, weights in links)])
    return list(numbers), _undirected(sources, targets, weights, documents + len(numbers))


def _resolved_links(
    graph: _SegmentGraph, base: int, segments: SegmentSet, node_by_position: Ints
) -> tuple[Ints, Ints, npt.NDArray[np.float32]]:
    """A segment's links between living documents: source nodes, target nodes, weights.

    A target that does not exist yet is looked up again by the next build.
    """
    sources = np.frombuffer(graph.link_rows, np.int32).astype(np.int64) + base
    targets = np.asarray(list(_positions(graph.link_targets, segments)), np.int64)
    valid = np.zeros(0, np.bool_)
    if len(sources):
        valid = segments.live[sources] & (targets >= 0) & (targets != sources)
    weights = np.frombuffer(graph.link_weights, np.float32)
    return node_by_position[sources[valid]], node_by_position[targets[valid]], weights[valid]


def _positions(keys: Sequence[_LinkTarget], segments: SegmentSet) -> Iterator[int]:
    """The position of each living document, -1 for one that does not exist."""
    for key in keys:
        position = segments.position(key)
        yield -1 if position is None else position


def _undirected(sources: Ints, targets: Ints, weights: npt.NDArray[np.float32], nodes: int) -> Adjacency:
    """Both directions of every edge, the strongest of parallel ones, each row scaled to the sum 1."""
    rows, columns = np.concatenate((sources, targets)), np.concatenate((targets, sources))
    values = np.concatenate((weights, weights)).astype(np.float32)
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    first = np.ones(len(rows), np.bool_)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    starts = np.flatnonzero(first)
    strongest = np.maximum.reduceat(values, starts) if len(starts) else values
    rows, columns = rows[starts], columns[starts]
    offsets = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=nodes))))
    totals = np.bincount(rows, strongest, minlength=nodes).astype(np.float32)
    return Adjacency(offsets.astype(np.int64), columns.astype(np.int32), (strongest / totals[rows]).astype(np.float32))
