"""Writes to a graph server: each batch of documents is one transaction.

Names, words and documents are counted by the difference between what is stored of a document and what is written. A
document carries the sequence number of its last write, so a batch that is sent twice is counted once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import msgspec

from adapters.graph.bolt import Row, Run, TransactionBody
from adapters.graph.cypher import statement
from adapters.graph.edges import OWN_WEIGHT, entity_names, link_weight
from adapters.graph.link_types import LinkCounts, TypeStrengths, link_strength
from adapters.graph.names import words_by_case
from adapters.graph.node_keys import NodeKeys
from adapters.model.document import Link, Record, Scope, fields, passage, rank_fields
from adapters.model.index_terms import filter_terms
from adapters.ports.graph import LinkStrength
from adapters.ports.replica import Key, VectorRecord
from fusion.doc_ids import doc_id

_ABSENT: Mapping[str, Any] = {
    "present": False,
    "version": 0,
    "words": [],
    "capitalised": [],
    "names": [],
    "listed": [],
    "size": 0,
}
"""The stored state of a document that does not exist."""


@dataclass(frozen=True, slots=True)
class DocumentWrite:
    """The new state of one document.

    :param state: whether it is present, and its words and names, in the form in which the server returns the stored
        state; :data:`_ABSENT` to delete the document.
    :param row: its properties; ``mentions`` and ``links`` are its edges.
    """

    key: str
    scope: Scope
    state: Mapping[str, Any]
    row: Row = field(default_factory=dict)
    mentions: list[Row] = field(default_factory=list)
    links: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class _CountDeltas:
    """Changes of the degrees of names, of how many authors list them, of the frequencies of words, and of the numbers
    of documents and of their words."""

    names: Counter[tuple[Scope, str]] = field(default_factory=Counter)
    listed: Counter[tuple[Scope, str]] = field(default_factory=Counter)
    words: Counter[tuple[Scope, str]] = field(default_factory=Counter)
    capitalised: Counter[tuple[Scope, str]] = field(default_factory=Counter)
    documents: Counter[Scope] = field(default_factory=Counter)
    sizes: Counter[Scope] = field(default_factory=Counter)

    def add(self, state: Mapping[str, Any], sign: int, scope: Scope) -> None:
        """Count what a document has (``sign`` 1), or no longer has (-1)."""
        if state["present"]:
            self.documents[scope] += sign
            self.sizes[scope] += sign * state["size"]
            self.names.update({(scope, name): sign for name in state["names"]})
            self.listed.update({(scope, name): sign for name in state["listed"]})
            self.words.update({(scope, word): sign for word in state["words"]})
            self.capitalised.update({(scope, word): sign for word in state["capitalised"]})


class GraphWrites:
    """The transactions that write to one index."""

    def __init__(self, index_name: str) -> None:
        self._index_name = index_name
        self._keys = NodeKeys(index_name)

    def upserts(self, batch: Sequence[VectorRecord]) -> list[DocumentWrite]:
        """The writes that add or replace records. Blocks: call it off the event loop."""
        return [self._upsert(each.record) for each in batch]

    def deletes(self, keys: Sequence[Key]) -> list[DocumentWrite]:
        """The writes that delete documents."""
        return [DocumentWrite(self._keys.document(key), Scope(key[0], key[1]), _ABSENT) for key in keys]

    def transaction(self, sequence: int, writes: Sequence[DocumentWrite]) -> TransactionBody[set[int]]:
        """A transaction that applies those of the writes that the server has not applied yet.

        It returns the versions of the documents that have a newer one than ``sequence``, and are not changed.
        """

        async def work(run: Run) -> set[int]:
            rows = await run(statement("stored_documents"), {"keys": [write.key for write in writes]})
            stored = {row["key"]: row for row in rows}
            due = [write for write in writes if stored.get(write.key, _ABSENT)["version"] < sequence]
            if due:
                await self._apply(run, sequence, due, stored)
            return {version for row in rows if (version := int(row["version"])) > sequence}

        return work

    async def _apply(self, run: Run, sequence: int, due: Sequence[DocumentWrite], stored: Mapping[str, Row]) -> None:
        deltas = _CountDeltas()
        for write in due:
            deltas.add(stored.get(write.key, _ABSENT), -1, write.scope)
            deltas.add(write.state, +1, write.scope)
        present = [write for write in due if write.state["present"]]
        deleted = [write.key for write in due if not write.state["present"] and write.key in stored]
        common = {"index": self._index_name, "version": sequence}
        mentions = [row for write in present for row in write.mentions]
        links = [row for write in present for row in write.links]
        await run(statement("delete_outgoing_edges"), {"keys": [write.key for write in due]})
        await run(statement("write_documents"), {"rows": [write.row for write in present], **common})
        await run(statement("write_mentions"), {"rows": mentions, **common})
        await run(statement("write_links"), {"rows": links, **common})
        await run(statement("delete_documents"), {"keys": deleted, **common})
        keys = self._keys
        name_rows = _count_rows(deltas.names, keys.names, listed=deltas.listed)
        word_rows = _count_rows(deltas.words, keys.words, capitalised=deltas.capitalised)
        scope_rows = [
            {"key": key, "delta": deltas.documents[scope], "words": deltas.sizes[scope]}
            for key, scope in sorted((keys.scope(scope), scope) for scope in deltas.documents)
        ]
        await run(statement("add_name_counts"), {"rows": name_rows})
        await run(statement("add_word_counts"), {"rows": word_rows, **common})
        await run(statement("add_scope_counts"), {"rows": scope_rows, **common})
        # A document that came or went changes the strengths of those that link to it.
        moved = [write.key for write in due if stored.get(write.key, _ABSENT)["present"] != write.state["present"]]
        sources = await run(statement("link_sources"), {"keys": moved})
        changed = {write.key for write in present} | {row["target"] for row in links} | {row["key"] for row in sources}
        await run(statement("update_strengths"), {"keys": sorted(changed), "own_weight": OWN_WEIGHT})

    def _upsert(self, record: Record) -> DocumentWrite:
        document, key = record.document, self._keys.document(record.key)
        scope = Scope(record.tenant, record.environment)
        names = entity_names(record)
        in_text, in_lower_case = words_by_case(passage(document))
        distinct_words, capitalised = set(in_text), sorted(set(in_text) - in_lower_case)
        listed = [name for name, is_listed in names.items() if is_listed]
        key_of_name = self._keys.names(scope)
        return DocumentWrite(
            key,
            scope,
            {
                "present": True,
                "words": distinct_words,
                "capitalised": capitalised,
                "names": names,
                "listed": listed,
                "size": len(in_text),
            },
            row={
                "key": key,
                "id": record.doc_id,
                "scope": self._keys.scope(scope),
                "filter_terms": filter_terms(fields(record)),
                "words": sorted(distinct_words),
                "capitalised": capitalised,
                "size": max(len(in_text), 1),
                "rank_fields": msgspec.json.encode(rank_fields(document)).decode(),
            },
            mentions=[
                {"document": key, "key": key_of_name(name), "name": name, "listed": names[name]}
                for name in sorted(names)
            ],
            links=[
                {"document": key, "target": target, "type": each.type, "weight": link_weight(each)}
                for each in document.links
                if (target := self._target(record, each)) != key
            ],
        )

    def _target(self, record: Record, link: Link) -> str:
        target = doc_id(link.target, link.target_collection or record.document.collection)
        return self._keys.document((record.tenant, record.environment, target))


def _count_rows(
    deltas: Counter[tuple[Scope, str]],
    keys: Callable[[Scope], Callable[[str], str]],
    **others: Counter[tuple[Scope, str]],
) -> list[Row]:
    """The counts that change, sorted by key, so that two writers lock the nodes that both change in the same order.

    :param others: counts of the same nodes, by the name that they have in the rows.
    """
    rows = [
        {"key": keys(scope)(text), "delta": delta, **{name: each[scope, text] for name, each in others.items()}}
        for (scope, text), delta in deltas.items()
    ]
    changed = [row for row in rows if any(row[name] for name in ("delta", *others))]
    return sorted(changed, key=itemgetter("key"))


def link_type_rows(rows: Sequence[Row], chosen: TypeStrengths) -> list[Row]:
    """The strengths of the link types of each scope, from the counts that the server returns."""
    sides: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        sides.setdefault((row["scope"], row["type"]), {})[row["side"]] = row
    by_scope: dict[str, list[LinkStrength]] = {}
    for (scope, type_), side in sorted(sides.items()):
        source, target, either = side["source"], side["target"], side["either"]
        counts = LinkCounts(
            links=source["links"],
            documents=either["documents"],
            sources=source["documents"],
            targets=target["documents"],
            squares_by_source=source["squares"],
            squares_by_target=target["squares"],
        )
        by_scope.setdefault(scope, []).append(link_strength(type_, counts, chosen))
    return [
        {
            "scope": scope,
            "types": [each.type for each in strengths],
            "forward": [each.forward for each in strengths],
            "backward": [each.backward for each in strengths],
            "reasons": [each.reason for each in strengths],
        }
        for scope, strengths in by_scope.items()
    ]
