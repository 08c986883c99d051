"""The part of the embedded graph that one segment contributes: it is read from the documents once."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec
import numpy as np

from adapters.engine.segment import Segment
from adapters.graph.edges import entity_names, link_weight
from adapters.graph.names import words_by_case
from adapters.model.document import Sensitivity, passage

Name = tuple[str, str, str]
"""(tenant, environment, normalised name). Names are never shared between scopes, so no walk can cross them."""
LinkTarget = tuple[str, str, str, str, bool]
"""(tenant, environment, id, collection) of a document, and whether the link names the collection."""


LinkType = tuple[str, str, str]
"""(tenant, environment, type). Types are not shared, so the links of one tenant never change another's results."""


class SegmentGraph(msgspec.Struct, frozen=True):
    """The names, mentions, links and word counts of one segment. Rows are the segment's; a mention is (row, index).

    ``mention_names`` are indices into ``names``, ``mention_listed`` are booleans (whether the author lists the name),
    ``link_type_numbers`` are indices into ``link_types``, ``row_groups`` into ``words``; ``lengths`` has the number of
    words by row; ``words`` has the number of documents with each word, by scope and sensitivity, and ``capitalised``
    beside it the number of those that have it with a capital only.
    """

    names: list[Name]
    mention_rows: bytes
    mention_names: bytes
    mention_listed: bytes
    link_rows: bytes
    link_targets: list[LinkTarget]
    link_weights: bytes
    link_types: list[LinkType]
    link_type_numbers: bytes
    lengths: bytes
    row_groups: bytes
    words: list[tuple[str, str, Sensitivity, dict[str, int]]]
    capitalised: list[dict[str, int]]


def segment_graph(segment: Segment) -> SegmentGraph:
    """Read the documents of a segment."""
    numbers: dict[Name, int] = {}
    mention_rows, mention_names, mention_listed = [], [], []
    types: dict[LinkType, int] = {}
    link_rows, link_targets, link_weights, link_types = [], [], [], []
    lengths, row_groups = [], []
    groups: dict[tuple[str, str, Sensitivity], int] = {}
    counts: dict[tuple[str, str, Sensitivity], Counter[str]] = defaultdict(Counter)
    capitalised: dict[tuple[str, str, Sensitivity], Counter[str]] = defaultdict(Counter)
    for row in range(len(segment)):
        record = segment.record(row)
        document = record.document
        in_text, in_lower_case = words_by_case(passage(document))
        scope = (record.tenant, record.environment)
        lengths.append(len(in_text))
        group = (*scope, document.sensitivity)
        row_groups.append(groups.setdefault(group, len(groups)))
        counts[group].update(set(in_text))
        capitalised[group].update(set(in_text) - in_lower_case)
        for name, is_listed in entity_names(record).items():
            mention_rows.append(row)
            mention_listed.append(is_listed)
            mention_names.append(numbers.setdefault((*scope, name), len(numbers)))
        for each in document.links:
            link_rows.append(row)
            collection = each.target_collection or document.collection
            link_targets.append((*scope, each.target, collection, each.target_collection is not None))
            link_weights.append(link_weight(each))
            link_types.append(types.setdefault((*scope, each.type), len(types)))
    return SegmentGraph(
        names=list(numbers),
        mention_rows=np.asarray(mention_rows, np.int32).tobytes(),
        mention_names=np.asarray(mention_names, np.int32).tobytes(),
        mention_listed=np.asarray(mention_listed, np.bool_).tobytes(),
        link_rows=np.asarray(link_rows, np.int32).tobytes(),
        link_targets=link_targets,
        link_weights=np.asarray(link_weights, np.float32).tobytes(),
        link_types=list(types),
        link_type_numbers=np.asarray(link_types, np.int32).tobytes(),
        lengths=np.asarray(lengths, np.int32).tobytes(),
        row_groups=np.asarray(row_groups, np.int32).tobytes(),
        words=[(*group, dict(counts[group])) for group in groups],
        capitalised=[dict(capitalised[group]) for group in groups],
    )
