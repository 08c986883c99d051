"""The part of the embedded graph that one segment contributes: each document is read once, when it is written."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np

from adapters.engine.segment import Segment
from adapters.graph.edges import entity_names, link_weight
from adapters.graph.names import words_by_case
from adapters.model.document import Record, passage
from adapters.model.protection import Sensitivity

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
    beside it the number of those that have it with a capital only; ``docnos`` has the document by row.
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
    docnos: bytes = b""


_Group: TypeAlias = tuple[str, str, Sensitivity]
"""(tenant, environment, sensitivity)."""


def segment_graph(segment: Segment, known: Iterable[SegmentGraph] = ()) -> SegmentGraph:
    """The part of a segment. Rows that are all rows of a known part are copied from it, the others are read.

    :param known: parts of segments of which this one may be merged.
    """
    first_rows = {docno: row for row, docno in enumerate(segment.docnos.tolist())}
    blocks = {
        first_rows[docnos[0]]: part
        for part in known
        if len(docnos := np.frombuffer(part.docnos, np.int64).tolist()) and _is_block(docnos, first_rows)
    }
    builder, row = _Builder(), 0
    while row < len(segment):
        if part := blocks.get(row):
            builder.copy(part, row)
            row += len(part.docnos) // segment.docnos.itemsize
        else:
            builder.read(segment.record(row), row)
            row += 1
    return builder.part(segment.docnos.tobytes())


def _is_block(docnos: Sequence[int], rows: Mapping[int, int]) -> bool:
    """Whether these documents are rows one after the other."""
    first = rows.get(docnos[0])
    return first is not None and all(rows.get(docno) == row for row, docno in enumerate(docnos, start=first))


class _Builder:
    """Collects the rows of a part in their order."""

    def __init__(self) -> None:
        self._names: dict[Name, int] = {}
        self._mentions: tuple[list[int], list[int], list[bool]] = ([], [], [])
        self._types: dict[LinkType, int] = {}
        self._links: tuple[list[int], list[LinkTarget], list[float], list[int]] = ([], [], [], [])
        self._lengths: list[int] = []
        self._row_groups: list[int] = []
        self._groups: dict[_Group, int] = {}
        self._counts: dict[_Group, Counter[str]] = defaultdict(Counter)
        self._capitalised: dict[_Group, Counter[str]] = defaultdict(Counter)

    def read(self, record: Record, row: int) -> None:
        """Add the next row: what its document says."""
        document, scope = record.document, (record.tenant, record.environment)
        in_text, in_lower_case = words_by_case(passage(document))
        self._lengths.append(len(in_text))
        group = (*scope, document.sensitivity)
        self._row_groups.append(self._groups.setdefault(group, len(self._groups)))
        self._counts[group].update(set(in_text))
        self._capitalised[group].update(set(in_text) - in_lower_case)
        for name, is_listed in entity_names(record).items():
            number = self._names.setdefault((*scope, name), len(self._names))
            _append(self._mentions, (row, number, is_listed))
        for each in document.links:
            collection = each.target_collection or document.collection
            target = (*scope, each.target, collection, each.target_collection is not None)
            type_ = self._types.setdefault((*scope, each.type), len(self._types))
            _append(self._links, (row, target, link_weight(each), type_))

    def copy(self, part: SegmentGraph, first: int) -> None:
        """Add the rows of another part, from the row ``first`` on."""
        names = [self._names.setdefault(name, len(self._names)) for name in part.names]
        types = [self._types.setdefault(type_, len(self._types)) for type_ in part.link_types]
        groups = [self._groups.setdefault(each[:3], len(self._groups)) for each in part.words]
        rows, numbers, listed = self._mentions
        rows += (np.frombuffer(part.mention_rows, np.int32) + first).tolist()
        numbers += [names[number] for number in np.frombuffer(part.mention_names, np.int32).tolist()]
        listed += np.frombuffer(part.mention_listed, np.bool_).tolist()
        rows, targets, weights, numbers = self._links
        rows += (np.frombuffer(part.link_rows, np.int32) + first).tolist()
        targets += part.link_targets
        weights += np.frombuffer(part.link_weights, np.float32).tolist()
        numbers += [types[number] for number in np.frombuffer(part.link_type_numbers, np.int32).tolist()]
        self._lengths += np.frombuffer(part.lengths, np.int32).tolist()
        self._row_groups += [groups[number] for number in np.frombuffer(part.row_groups, np.int32).tolist()]
        for (tenant, environment, sensitivity, counts), capitals in zip(part.words, part.capitalised, strict=True):
            self._counts[tenant, environment, sensitivity].update(counts)
            self._capitalised[tenant, environment, sensitivity].update(capitals)

    def part(self, docnos: bytes) -> SegmentGraph:
        """What was collected."""
        mention_rows, mention_names, mention_listed = self._mentions
        link_rows, link_targets, link_weights, link_types = self._links
        return SegmentGraph(
            names=list(self._names),
            mention_rows=np.asarray(mention_rows, np.int32).tobytes(),
            mention_names=np.asarray(mention_names, np.int32).tobytes(),
            mention_listed=np.asarray(mention_listed, np.bool_).tobytes(),
            link_rows=np.asarray(link_rows, np.int32).tobytes(),
            link_targets=link_targets,
            link_weights=np.asarray(link_weights, np.float32).tobytes(),
            link_types=list(self._types),
            link_type_numbers=np.asarray(link_types, np.int32).tobytes(),
            lengths=np.asarray(self._lengths, np.int32).tobytes(),
            row_groups=np.asarray(self._row_groups, np.int32).tobytes(),
            words=[(*group, dict(self._counts[group])) for group in self._groups],
            capitalised=[dict(self._capitalised[group]) for group in self._groups],
            docnos=docnos,
        )


def _append(columns: tuple[list[Any], ...], values: tuple[object, ...]) -> None:
    for column, value in zip(columns, values, strict=True):
        column.append(value)
