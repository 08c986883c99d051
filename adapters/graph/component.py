"""The files of the embedded graph: documents, names of entities, and the edges among them.

How far a walk goes depends on the degrees of its nodes, and what a name weighs on how many documents have its words. So
that nothing depends on documents that the caller may not see, there is a graph of the public documents, one of the
public and normal ones, and so on, for each sensitivity that documents have: usually one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from adapters.engine.component import Delta
from adapters.engine.segment_set import SegmentSet
from adapters.graph.entity_linking import WordCounts
from adapters.graph.join import count_documents, join_graphs, living_up_to
from adapters.graph.link_types import TypeStrengths
from adapters.graph.segment_edges import Name, SegmentGraph, segment_graph
from adapters.model.errors import Damaged
from adapters.model.protection import HIGHEST_CLEARANCE, SENSITIVITIES, Sensitivity, is_visible, visible_levels
from adapters.ports.graph import LinkStrength
from adapters.storage import files
from fusion.random_walk import Adjacency

_MAX_DELETED = 1 / 16
"""Maximum fraction of the document nodes that are deleted before the graph is built again."""


class _Build(msgspec.Struct, frozen=True):
    """The commit that built the graph, the strengths of links that were set then, and the resulting ones by scope."""

    commit: str
    chosen: dict[str, tuple[float, float]]
    strengths: list[tuple[str, str, list[LinkStrength]]]


class _ScopeNames(msgspec.Struct, frozen=True, array_like=True):
    """The names of a scope, their nodes as 64-bit integers, and the names that authors list as entities."""

    tenant: str
    environment: str
    names: list[str]
    nodes: bytes
    listed: list[str]


class _ScopeWords(msgspec.Struct, frozen=True, array_like=True):
    """The number of documents of a scope, of those with each word, and of those that have it with a capital only."""

    tenant: str
    environment: str
    documents: int
    frequency: dict[str, int]
    capitalised: dict[str, int]


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph. Its nodes are documents by position, then the names. Some documents may be deleted.

    :param commit: that built it. Later ones that only delete documents have the same graph.
    :param positions: by document node, its position in the segment set; ascending.
    :param name_count: number of nodes that are names.
    :param scopes: the vocabulary of each (tenant, environment).
    :param strengths: of the link types of each (tenant, environment).
    :param chosen: the strengths that were set when the graph was built.
    """

    commit: str
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
    :param listed: the nodes of names that authors list as entities.
    :param frequency: by word, the number of documents that contain it.
    :param capitalised: by word, the number of documents that have it with a capital only.
    :param documents: number of documents of the scope.
    """

    nodes: dict[str, int] = field(default_factory=dict)
    listed: frozenset[int] = frozenset()
    frequency: dict[str, int] = field(default_factory=dict)
    capitalised: dict[str, int] = field(default_factory=dict)
    documents: int = 0

    def counts(self, word: str) -> WordCounts:
        """The numbers of documents with a word."""
        return WordCounts(self.frequency.get(word, 0), self.capitalised.get(word, 0))


@dataclass(frozen=True, slots=True)
class Graphs:
    """The graphs of a commit, by the highest sensitivity of the documents in each."""

    by_level: Mapping[Sensitivity, Graph]

    def of(self, clearance: Sensitivity) -> Graph | None:
        """The graph of what a caller may see; ``None`` if that is nothing."""
        return next((self.by_level[level] for level in visible_levels(clearance) if level in self.by_level), None)


class GraphComponent:
    """The files: one for each segment, named after it, and the graphs in compressed sparse rows.

    :param chosen: strengths of link types that an operator has set; they override the derived ones.
    """

    name = "graph"
    format = "names-10"

    def __init__(self, chosen: TypeStrengths | None = None) -> None:
        self._chosen = dict(chosen or {})

    def build(self, target: Path, previous: Path | None, segments: SegmentSet, delta: Delta) -> None:
        """Read what is new in the segments, link the files of the others, then join all of them.

        If few documents were deleted and none added, all files are linked: no search visits the deleted ones.
        """
        if previous and delta.removed and not delta.added and _is_still_valid(previous, segments):
            for path in (path for path in previous.rglob("*") if path.is_file()):
                linked = target / path.relative_to(previous)
                linked.parent.mkdir(exist_ok=True)
                files.link_or_copy(path, linked)
            return
        merged = _merged_parts(previous, {segment.name for segment in segments.segments}) if previous else []
        graphs = []
        for segment in segments.segments:
            file = f"{segment.name}.part"
            if previous and (previous / file).exists():
                files.link_or_copy(previous / file, target / file)
            else:
                (target / file).write_bytes(msgspec.msgpack.encode(segment_graph(segment, merged)))
            graphs.append(_part(target / file))
        for level in SENSITIVITIES:
            if any(level == sensitivity for graph in graphs for _, _, sensitivity, _ in graph.words):
                (target / level).mkdir()
                self._join(target / level, graphs, segments, level)

    def _join(self, target: Path, graphs: Sequence[SegmentGraph], segments: SegmentSet, level: Sensitivity) -> None:
        """Write the graph of the documents up to a level."""
        flags = living_up_to(level, graphs, segments)
        joined = join_graphs(graphs, segments, flags, level, self._chosen)
        frequency: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        capitalised: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for graph in graphs:
            for (tenant, environment, sensitivity, counts), capitals in zip(
                graph.words, graph.capitalised, strict=True
            ):
                if is_visible(sensitivity, level):
                    frequency[tenant, environment].update(counts)
                    capitalised[tenant, environment].update(capitals)
        documents = count_documents(graphs, flags, level)
        words = [
            _ScopeWords(*scope, documents[scope], counts, capitalised[scope]) for scope, counts in frequency.items()
        ]
        built = _Build(target.parent.name, self._chosen, [(*scope, each) for scope, each in joined.strengths.items()])
        for name, content in (("names", _by_scope(joined.names, int(flags.sum()))), ("words", words), ("build", built)):
            (target / f"{name}.msgpack").write_bytes(msgspec.msgpack.encode(content))
        np.save(target / "positions.npy", np.flatnonzero(flags))
        np.save(target / "offsets.npy", joined.adjacency.offsets)
        np.save(target / "targets.npy", joined.adjacency.targets)
        np.save(target / "weights.npy", joined.adjacency.weights)

    def open(self, folder: Path, segments: SegmentSet, before: Graphs | None) -> Graphs:
        """Map the edges and load the names."""
        del segments
        known = before.by_level if before else {}
        return Graphs(
            {level: _open(folder / level, known.get(level)) for level in SENSITIVITIES if (folder / level).is_dir()}
        )

    def is_outdated(self, index: Graphs) -> bool:
        """Whether other strengths of links were set when the graphs were built."""
        return any(dict(graph.chosen) != self._chosen for graph in index.by_level.values())

    def count(self, index: Graphs, segments: SegmentSet) -> int:
        """Number of document nodes that are not deleted."""
        graph = index.of(HIGHEST_CLEARANCE)
        return int(segments.live[graph.positions].sum()) if graph else 0

    def fragment_count(self, index: Graphs) -> int:
        """Returns 1: every build joins all segments."""
        del index
        return 1


def _merged_parts(previous: Path, kept: AbstractSet[str]) -> list[SegmentGraph]:
    """The parts of the segments that are merged now. One that is damaged is left out: the texts say the same."""
    parts = []
    for path in sorted(previous.glob("*.part")):
        if path.stem not in kept:
            with suppress(Damaged):
                parts.append(_part(path))
    return parts


def _part(path: Path) -> SegmentGraph:
    """The part of a segment.

    :raises Damaged: if the file has changed so that it cannot be read.
    """
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=SegmentGraph)
    except msgspec.DecodeError as error:
        raise Damaged("the index is damaged", str(path)) from error


def _open(folder: Path, before: Graph | None) -> Graph:
    """Map one graph, unless it is the one before."""
    built = msgspec.msgpack.decode((folder / "build.msgpack").read_bytes(), type=_Build)
    if before and before.commit == built.commit:
        return before
    # As plain arrays: indexing a numpy.memmap costs 20 µs more, for the same memory.
    offsets, targets, weights, positions = (
        np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r"))
        for name in ("offsets", "targets", "weights", "positions")
    )
    return Graph(
        built.commit,
        Adjacency(offsets, targets, weights),
        positions,
        len(offsets) - 1 - len(positions),
        _vocabularies((folder / "names.msgpack").read_bytes(), (folder / "words.msgpack").read_bytes()),
        {(tenant, environment): strengths for tenant, environment, strengths in built.strengths},
        built.chosen,
    )


def _is_still_valid(folder: Path, segments: SegmentSet) -> bool:
    """Whether the graphs are those of these segments, and few of their documents are deleted since."""
    if {path.stem for path in folder.glob("*.part")} != {each.name for each in segments.segments}:
        return False
    living = (segments.live[np.load(path, mmap_mode="r")] for path in folder.glob("*/positions.npy"))
    return all(int(np.count_nonzero(~live)) <= _MAX_DELETED * len(live) for live in living)


def _by_scope(names: Mapping[Name, bool], document_count: int) -> list[_ScopeNames]:
    nodes: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    listed: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node, ((tenant, environment, name), is_listed) in enumerate(names.items(), start=document_count):
        nodes[tenant, environment][name] = node
        if is_listed:
            listed[tenant, environment].append(name)
    return [
        _ScopeNames(*scope, list(each), np.array([*each.values()]).tobytes(), listed[scope])
        for scope, each in nodes.items()
    ]


def _vocabularies(names: bytes, words: bytes) -> dict[tuple[str, str], Vocabulary]:
    scopes: dict[tuple[str, str], Vocabulary] = defaultdict(Vocabulary)
    for of_scope in msgspec.msgpack.decode(names, type=list[_ScopeNames]):
        nodes: list[int] = np.frombuffer(of_scope.nodes, np.int64).tolist()
        vocabulary = scopes[of_scope.tenant, of_scope.environment]
        vocabulary.nodes = dict(zip(of_scope.names, nodes, strict=True))
        vocabulary.listed = frozenset(vocabulary.nodes[name] for name in of_scope.listed)
    for each in msgspec.msgpack.decode(words, type=list[_ScopeWords]):
        vocabulary = scopes[each.tenant, each.environment]
        vocabulary.frequency, vocabulary.capitalised = each.frequency, each.capitalised
        vocabulary.documents = each.documents
    return dict(scopes)
