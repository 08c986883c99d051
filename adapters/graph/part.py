"""The files of the embedded graph: names and documents, and the edges among them."""

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
from adapters.embedded import Catalog, Change
from adapters.embedded.segment import Segment
from adapters.filter import access, normal
from adapters.graph.edges import named, strength
from adapters.graph.names import words
from fusion import Adjacency

Name = tuple[str, str, str]
"""(tenant, environment, normalised name): names are never shared between scopes, so no walk can cross them."""


class _Part(msgspec.Struct, frozen=True):
    """What one segment gives to the graph; rows are the segment's."""

    names: list[Name]
    mention_rows: bytes
    mention_names: bytes
    link_rows: bytes
    link_targets: list[Name]
    link_weights: bytes
    words: list[tuple[str, str, dict[str, int]]]


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes: the living documents in catalog order, then the names.

    ``positions`` says where in the catalog a document's node stands; ``scopes`` holds what may be known in each scope.
    """

    adjacency: Adjacency
    positions: npt.NDArray[np.int64]
    names: int
    scopes: dict[tuple[str, str], Vocabulary]


@dataclass(slots=True)
class Vocabulary:
    """The names of one scope, each with its node; in how many of its documents a word occurs; and how many there are.

    Counted for each scope by itself: what one tenant writes must not move another's results.
    """

    nodes: dict[str, int] = field(default_factory=dict)
    frequency: dict[str, int] = field(default_factory=dict)
    documents: int = 0


class GraphPart:
    """The files: what each segment gives, named for it, and the whole graph in compressed sparse rows."""

    name = "graph"
    version = "names-3"

    def build(self, target: Path, previous: Path | None, catalog: Catalog, change: Change) -> None:  # noqa: ARG002
        """Read new segments, then join all of them."""
        parts = []
        for segment in catalog.segments:
            file = f"{segment.name}.part"
            if previous and (previous / file).exists():
                files.share(previous / file, target / file)
            else:
                (target / file).write_bytes(msgspec.msgpack.encode(_part(segment)))
            parts.append(msgspec.msgpack.decode((target / file).read_bytes(), type=_Part))
        names, adjacency = _join(parts, catalog)
        words: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for part in parts:
            for tenant, environment, counts in part.words:
                words[tenant, environment].update(counts)
        (target / "names.msgpack").write_bytes(msgspec.msgpack.encode(names))
        (target / "words.msgpack").write_bytes(msgspec.msgpack.encode([(*scope, words[scope]) for scope in words]))
        np.save(target / "offsets.npy", adjacency.offsets)
        np.save(target / "targets.npy", adjacency.targets)
        np.save(target / "weights.npy", adjacency.weights)

    def open(self, folder: Path, catalog: Catalog) -> Graph:
        """Map the edges, load the names."""
        offsets, targets, weights = (
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("offsets", "targets", "weights")
        )
        names = msgspec.msgpack.decode((folder / "names.msgpack").read_bytes(), type=list[Name])
        return Graph(
            # As plain arrays: indexing a numpy.memmap costs 20 µs more, for the same memory.
            Adjacency(np.asarray(offsets), np.asarray(targets), np.asarray(weights)),
            np.flatnonzero(catalog.live),
            len(names),
            _vocabularies(names, (folder / "words.msgpack").read_bytes(), catalog),
        )

    def count(self, index: Graph, catalog: Catalog) -> int:
        """Nodes that are documents."""
        del catalog
        return len(index.positions)

    def pieces(self, index: Graph) -> int:  # noqa: ARG002
        """One: every build joins all segments."""
        return 1


def _vocabularies(names: Sequence[Name], words: bytes, catalog: Catalog) -> dict[tuple[str, str], Vocabulary]:
    scopes: dict[tuple[str, str], Vocabulary] = defaultdict(Vocabulary)
    for node, (tenant, environment, name) in enumerate(names, start=catalog.count):
        scopes[tenant, environment].nodes[name] = node
    for tenant, environment, counts in msgspec.msgpack.decode(words, type=list[tuple[str, str, dict[str, int]]]):
        scopes[tenant, environment].frequency = counts
    for (tenant, environment), known in scopes.items():
        known.documents = catalog.mask(normal(access(Scope(tenant, environment), SENSITIVITIES[-1]))).count
    return dict(scopes)


def _part(segment: Segment) -> _Part:
    numbers: dict[Name, int] = {}
    mention_rows, mention_names = [], []
    link_rows, link_targets, link_weights = [], [], []
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in range(len(segment)):
        record = segment.record(row)
        document = record.document
        counts[record.tenant, record.environment].update(set(words(passage(document))))
        for name in named(record):
            mention_rows.append(row)
            mention_names.append(numbers.setdefault((record.tenant, record.environment, name), len(numbers)))
        for each in document.links:
            link_rows.append(row)
            link_targets.append((record.tenant, record.environment, each.target))
            link_weights.append(strength(each))
    return _Part(
        names=list(numbers),
        mention_rows=np.asarray(mention_rows, np.int32).tobytes(),
        mention_names=np.asarray(mention_names, np.int32).tobytes(),
        link_rows=np.asarray(link_rows, np.int32).tobytes(),
        link_targets=link_targets,
        link_weights=np.asarray(link_weights, np.float32).tobytes(),
        words=[(*scope, dict(counts[scope])) for scope in counts],
    )


def _join(parts: Sequence[_Part], catalog: Catalog) -> tuple[list[Name], Adjacency]:
    """All segments' names and edges as one undirected graph whose rows sum to 1."""
    node_at = np.cumsum(catalog.live) - 1
    numbers: dict[Name, int] = {}
    mentions: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
    links: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]] = []
    for part, base in zip(parts, catalog.bases[:-1], strict=True):
        rows = np.frombuffer(part.mention_rows, np.int32) + base
        named = np.frombuffer(part.mention_names, np.int32)
        alive = catalog.live[rows]
        used = np.unique(named[alive])
        number = np.zeros(len(part.names), np.int64)
        number[used] = [numbers.setdefault(part.names[index], len(numbers)) for index in used]
        mentions.append((node_at[rows[alive]], number[named[alive]]))
        links.append(_resolve(part, int(base), catalog, node_at))
    documents = catalog.count
    sources = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in mentions)])
    names = np.concatenate([np.zeros(0, np.int64), *(named for _, named in mentions)])
    degree = np.bincount(names, minlength=len(numbers)).astype(np.float32)
    rows = np.concatenate([sources, *(rows for rows, _, _ in links)])
    columns = np.concatenate([names + documents, *(targets for _, targets, _ in links)])
    weights = np.concatenate([degree[names] ** -0.5, *(weights for _, _, weights in links)])
    return list(numbers), _undirected(rows, columns, weights, documents + len(numbers))


def _resolve(
    part: _Part, base: int, catalog: Catalog, node_at: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """A part's links between documents that live. A target that is not there yet is looked for again next time."""
    rows = np.frombuffer(part.link_rows, np.int32).astype(np.int64) + base
    targets = np.asarray(list(_positions(part.link_targets, catalog)), np.int64)
    there = catalog.live[rows] & (targets >= 0) & (targets != rows) if len(rows) else np.zeros(0, np.bool_)
    weights = np.frombuffer(part.link_weights, np.float32)
    return node_at[rows[there]], node_at[targets[there]], weights[there]


def _positions(keys: Sequence[Name], catalog: Catalog) -> Iterator[int]:
    for key in keys:
        position = catalog.position(key)
        yield -1 if position is None else position


def _undirected(
    rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], weights: npt.NDArray[np.float32], nodes: int
) -> Adjacency:
    """Both directions of every edge, the strongest of parallel ones, each row scaled to sum 1."""
    sources, targets = np.concatenate((rows, columns)), np.concatenate((columns, rows))
    both = np.concatenate((weights, weights)).astype(np.float32)
    order = np.lexsort((targets, sources))
    sources, targets, both = sources[order], targets[order], both[order]
    first = np.ones(len(sources), np.bool_)
    first[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    starts = np.flatnonzero(first)
    strongest = np.maximum.reduceat(both, starts) if len(starts) else both
    sources, targets = sources[starts], targets[starts]
    offsets = np.concatenate(([0], np.cumsum(np.bincount(sources, minlength=nodes))))
    total = np.bincount(sources, strongest, minlength=nodes).astype(np.float32)
    return Adjacency(
        offsets.astype(np.int64), targets.astype(np.int32), (strongest / total[sources]).astype(np.float32)
    )
