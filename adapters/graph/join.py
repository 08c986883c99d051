"""The parts of all segments as one graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adapters.engine.columns import Flags
from adapters.engine.segment import Segment
from adapters.engine.segment_set import SegmentSet
from adapters.engine.view import by_segment
from adapters.graph.edges import OWN_WEIGHT
from adapters.graph.link_types import LinkCounts, TypeStrengths, full_length, link_strength
from adapters.graph.segment_edges import LinkTarget, LinkType, Name, SegmentGraph
from adapters.model.protection import Sensitivity, is_visible
from adapters.ports.graph import LinkStrength
from fusion.doc_ids import doc_id
from fusion.random_walk import Adjacency
from fusion.rank_fields import Ints

_MAX_SEARCHED_COLLECTIONS = 64
"""In more collections than these the target of a link is not looked for, unless the link names one."""


@dataclass(frozen=True, slots=True)
class _Links:
    """Links between living documents, as columns: source nodes, target nodes, weights, indices of types."""

    sources: Ints
    targets: Ints
    weights: npt.NDArray[np.float32]
    types: Ints

    @classmethod
    def concatenated(cls, parts: Sequence[_Links]) -> _Links:
        """All links, in order."""
        return cls(
            np.concatenate([np.zeros(0, np.int64), *(part.sources for part in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(part.targets for part in parts)]),
            np.concatenate([np.zeros(0, np.float32), *(part.weights for part in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(part.types for part in parts)]),
        )


@dataclass(frozen=True, slots=True)
class JoinedGraph:
    """The graph of several segments.

    :param names: each with whether the author of a document lists it as an entity. Their nodes follow the documents'.
    :param strengths: of the link types of each (tenant, environment).
    """

    names: Mapping[Name, bool]
    adjacency: Adjacency
    strengths: Mapping[tuple[str, str], list[LinkStrength]]


def join_graphs(
    graphs: Sequence[SegmentGraph], segments: SegmentSet, flags: Flags, level: Sensitivity, chosen: TypeStrengths
) -> JoinedGraph:
    """The names and edges of all segments as one graph with both directions of every edge; the strengths of its links.

    A document's row sums to less than 1: see :data:`adapters.graph.edges.OWN_WEIGHT`. What is missing in a row returns
    to the seeds of a walk. Nothing in the graph depends on living documents that are not flagged.

    :param flags: the living documents up to ``level``: see :func:`living_up_to`.
    """
    node_by_position = np.cumsum(flags) - 1
    collections = _collections(segments, flags)
    numbers: dict[Name, int] = {}
    listed: set[Name] = set()
    types: dict[LinkType, int] = {}
    mentions: list[tuple[Ints, Ints]] = []
    parts: list[_Links] = []
    for graph, base in zip(graphs, segments.bases[:-1], strict=True):
        positions = np.frombuffer(graph.mention_rows, np.int32) + base
        mentioned = np.frombuffer(graph.mention_names, np.int32)
        alive = flags[positions]
        used = np.unique(mentioned[alive])
        is_listed = np.frombuffer(graph.mention_listed, np.bool_)
        listed.update(graph.names[index] for index in np.unique(mentioned[alive & is_listed]))
        number = np.zeros(len(graph.names), np.int64)
        number[used] = [numbers.setdefault(graph.names[index], len(numbers)) for index in used]
        mentions.append((node_by_position[positions[alive]], number[mentioned[alive]]))
        targets = np.asarray(list(_positions(graph.link_targets, segments, flags, collections)), np.int64)
        parts.append(_resolved_links(graph, int(base), targets, flags, node_by_position, types))
    links = _Links.concatenated(parts)
    strengths = [
        link_strength(name, counts, chosen) for (_, _, name), counts in zip(types, _counts(links, types), strict=True)
    ]
    by_scope: dict[tuple[str, str], list[LinkStrength]] = defaultdict(list)
    for (tenant, environment, _), strength in zip(types, strengths, strict=True):
        by_scope[tenant, environment].append(strength)
    documents = int(flags.sum())
    mentioning = np.concatenate([np.zeros(0, np.int64), *(nodes for nodes, _ in mentions)])
    names = np.concatenate([np.zeros(0, np.int64), *(named for _, named in mentions)])
    degree = np.bincount(names, minlength=len(numbers)).astype(np.float32)
    ones = np.ones(len(names), np.float32)
    mention_weights = degree[names] ** -0.5
    edges = _Edges(
        sources=np.concatenate((mentioning, links.sources)),
        targets=np.concatenate((names + documents, links.targets)),
        weights=np.concatenate((np.where(degree[names] > 1, mention_weights, 0.0), links.weights)),
        reverse_weights=np.concatenate((mention_weights, links.weights)),
        forward=np.concatenate((ones, np.array([each.forward for each in strengths], np.float32)[links.types])),
        backward=np.concatenate((ones, np.array([each.backward for each in strengths], np.float32)[links.types])),
    )
    own, factors = np.zeros(documents + len(numbers), np.float32), np.ones(documents + len(numbers), np.float32)
    own[:documents] = OWN_WEIGHT
    factors[:documents] = _length_factors(graphs, level)[flags]
    return JoinedGraph({name: name in listed for name in numbers}, _both_directions(edges, own, factors), by_scope)


def living_up_to(level: Sensitivity, graphs: Sequence[SegmentGraph], segments: SegmentSet) -> Flags:
    """Returns for each row of all segments whether it is a living document of this sensitivity or a lower one."""
    _, _, visible = _groups(graphs, level)
    return segments.live & visible


def count_documents(graphs: Sequence[SegmentGraph], flags: Flags, level: Sensitivity) -> Mapping[tuple[str, str], int]:
    """The number of flagged documents of each (tenant, environment)."""
    numbers, scopes, _ = _groups(graphs, level)
    counts = np.bincount(scopes[flags], minlength=len(numbers))
    return dict(zip(numbers, counts.tolist(), strict=True))


def _length_factors(graphs: Sequence[SegmentGraph], level: Sensitivity) -> npt.NDArray[np.float32]:
    """Returns for each row of all segments the fraction of a walk's mass that it receives: below 1 for a short text."""
    numbers, scope, visible = _groups(graphs, level)
    lengths = [np.zeros(0, np.int32), *(np.frombuffer(graph.lengths, np.int32) for graph in graphs)]
    length = np.maximum(np.concatenate(lengths), 1)
    totals = np.bincount(scope[visible], length[visible], len(numbers))
    counts = np.bincount(scope[visible], minlength=len(numbers))
    full = np.array(
        [full_length(float(total), max(int(count), 1)) for total, count in zip(totals, counts, strict=True)]
    )
    factors: npt.NDArray[np.float32] = np.minimum(length / full[scope], 1.0).astype(np.float32)
    return factors


def _groups(graphs: Sequence[SegmentGraph], level: Sensitivity) -> tuple[Mapping[tuple[str, str], int], Ints, Flags]:
    """A number for each (tenant, environment), that of each row of all segments, and whether the row is of a
    sensitivity up to a level."""
    numbers: dict[tuple[str, str], int] = {}
    scopes, flags = [np.zeros(0, np.int64)], [np.zeros(0, np.bool_)]
    for graph in graphs:
        groups = np.frombuffer(graph.row_groups, np.int32)
        number = [numbers.setdefault((tenant, environment), len(numbers)) for tenant, environment, *_ in graph.words]
        scopes.append(np.asarray(number, np.int64)[groups])
        flags.append(np.array([is_visible(each, level) for _, _, each, _ in graph.words], np.bool_)[groups])
    return numbers, np.concatenate(scopes), np.concatenate(flags)


def _collections(segments: SegmentSet, flags: Flags) -> Mapping[tuple[str, str], Sequence[str]]:
    """The collections of the flagged documents of each (tenant, environment), sorted."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for segment, of_segment in zip(segments.segments, by_segment(flags, segments), strict=True):
        texts, codes = zip(*(_column(segment, field) for field in ("tenant", "environment", "collection")), strict=True)
        for tenant, environment, collection in np.unique(np.stack(codes)[:, of_segment], axis=1).T.tolist():
            found[texts[0][tenant], texts[1][environment]].add(texts[2][collection])
    return {scope: sorted(names) for scope, names in found.items()}


def _column(segment: Segment, field: str) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """The texts of a field that every document has, and for each row the index of its text."""
    texts, (_, codes) = segment.columns.texts(field)
    return texts, codes


def _resolved_links(
    graph: SegmentGraph, base: int, targets: Ints, flags: Flags, node_by_position: Ints, types: dict[LinkType, int]
) -> _Links:
    """A segment's links between flagged documents. A target that does not exist yet is looked up by the next build.

    :param targets: the position of each link's target, -1 for none.
    :param types: number by type; those of the segment are added.
    """
    sources = np.frombuffer(graph.link_rows, np.int32).astype(np.int64) + base
    valid = np.zeros(0, np.bool_)
    if len(sources):
        valid = flags[sources] & (targets >= 0) & (targets != sources)
    weights = np.frombuffer(graph.link_weights, np.float32)
    local = np.frombuffer(graph.link_type_numbers, np.int32)[valid]
    number = np.zeros(len(graph.link_types), np.int64)
    used = np.unique(local)
    number[used] = [types.setdefault(graph.link_types[index], len(types)) for index in used]
    return _Links(node_by_position[sources[valid]], node_by_position[targets[valid]], weights[valid], number[local])


def _counts(links: _Links, types: Collection[LinkType]) -> Iterator[LinkCounts]:
    """The counts of each type."""
    order = np.lexsort((links.targets, links.sources, links.types))
    columns = links.types[order], links.sources[order], links.targets[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    kinds, sources, targets = (column[first] for column in columns)
    size = len(types)
    by_source, by_target = _degrees(kinds, sources, size), _degrees(kinds, targets, size)
    either, _ = _degrees(np.concatenate((kinds, kinds)), np.concatenate((sources, targets)), size)
    links_by_type = np.bincount(kinds, minlength=size)
    for index in range(size):
        yield LinkCounts(
            links=int(links_by_type[index]),
            documents=int(either[index]),
            sources=int(by_source[0][index]),
            targets=int(by_target[0][index]),
            squares_by_source=int(by_source[1][index]),
            squares_by_target=int(by_target[1][index]),
        )


def _degrees(kinds: Ints, nodes: Ints, size: int) -> tuple[Ints, Ints]:
    """Returns for each kind the number of distinct nodes, and the sum of the squares of their frequencies."""
    order = np.lexsort((nodes, kinds))
    kinds, nodes = kinds[order], nodes[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (kinds[1:] != kinds[:-1]) | (nodes[1:] != nodes[:-1])
    starts = np.flatnonzero(first)
    degrees = np.diff(np.append(starts, len(order)))
    squares = np.bincount(kinds[starts], degrees**2, minlength=size)
    return np.bincount(kinds[starts], minlength=size), squares.astype(np.int64)


def _positions(
    targets: Sequence[LinkTarget],
    segments: SegmentSet,
    flags: Flags,
    collections: Mapping[tuple[str, str], Sequence[str]],
) -> Iterator[int]:
    """The position of each flagged document, -1 for one that does not exist.

    Where a link does not name the collection of its target, that is the collection of the document itself; if the
    target is not there, the only other one that has it.
    """

    def flagged(tenant: str, environment: str, id_: str, collection: str) -> int | None:
        position = segments.position((tenant, environment, doc_id(id_, collection)))
        return None if position is None or not flags[position] else position

    for tenant, environment, id_, collection, is_named in targets:
        position = flagged(tenant, environment, id_, collection)
        others = collections.get((tenant, environment), ())
        if position is None and not is_named and len(others) <= _MAX_SEARCHED_COLLECTIONS:
            others = [name for name in others if name != collection]
            found = [each for name in others if (each := flagged(tenant, environment, id_, name)) is not None]
            position = found[0] if len(found) == 1 else None
        yield -1 if position is None else position


@dataclass(frozen=True, slots=True)
class _Edges:
    """Edges as columns. A walk follows ``weights * forward`` of an edge from source to target, ``reverse_weights *
    backward`` from target to source."""

    sources: Ints
    targets: Ints
    weights: npt.NDArray[np.float32]
    reverse_weights: npt.NDArray[np.float32]
    forward: npt.NDArray[np.float32]
    backward: npt.NDArray[np.float32]


def _both_directions(edges: _Edges, own: npt.NDArray[np.float32], factors: npt.NDArray[np.float32]) -> Adjacency:
    """Both directions of every edge, the strongest of parallel ones, as fractions of the weight of a node: its own one
    and that of all its edges.

    :param own: by node.
    :param factors: by node, the fraction of a walk's mass that it receives.
    """
    nodes = len(factors)
    rows = np.concatenate((edges.sources, edges.targets))
    columns = np.concatenate((edges.targets, edges.sources))
    weights = np.concatenate((edges.weights, edges.reverse_weights)).astype(np.float32)
    followed = weights * np.concatenate((edges.forward, edges.backward))
    order = np.lexsort((columns, rows))
    rows, columns, weights, followed = rows[order], columns[order], weights[order], followed[order]
    first = np.ones(len(rows), np.bool_)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    starts = np.flatnonzero(first)
    rows, columns = rows[starts], columns[starts]
    if len(starts):
        weights, followed = np.maximum.reduceat(weights, starts), np.maximum.reduceat(followed, starts)
    totals = own + np.bincount(rows, weights, minlength=nodes).astype(np.float32)
    fractions = (followed / totals[rows] * factors[columns]).astype(np.float32)
    used = fractions > 0
    offsets = np.concatenate(([0], np.cumsum(np.bincount(rows[used], minlength=nodes))))
    return Adjacency(offsets.astype(np.int64), columns[used].astype(np.int32), fractions[used])
