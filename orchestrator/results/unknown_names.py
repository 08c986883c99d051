"""Names in a request that no document has which the caller may see: probably spelled wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import assert_never

import anyio.to_thread

from adapters import Scope
from adapters.model.document import METADATA
from adapters.model.filter import And, Eq, Exists, Filter, In, Not, Or, Range, conjunction, kind, metadata_keys, normal
from adapters.model.filter_limits import FIELDS
from adapters.model.spelling import close_names, nearest
from adapters.ports import DocumentReader
from orchestrator.planning.plan import Plan

NO_COLLECTION = "no document is in the collection"
"""What the warning of an unknown collection begins with."""
MAX_KEYS = 16
"""Metadata keys that are looked up for one request: each is a search."""
_MAX_CHARS = 80
_NEAREST = 3


def named_keys(plan: Plan) -> frozenset[str]:
    """The keys of metadata in a request: in its filter, its facets and its order."""
    fields = [each.field for each in plan.facets]
    if plan.listing and plan.listing.sort:
        fields.append(plan.listing.sort.field)
    return metadata_keys(plan.ranking.filter).union(*(metadata_keys(Exists(field)) for field in fields))


async def name_warnings(
    plan: Plan, documents: DocumentReader, known_keys: Callable[[Scope], Iterable[str]]
) -> tuple[str, ...]:
    """A warning for each collection and metadata key that no document has.

    With ``explain``, also for each kind of value that a metadata key does not have.

    :param known_keys: metadata keys of a scope, also of documents that the caller may not see. Blocks.
    :raises AdapterError: if the documents cannot be read.
    """
    access, warnings = plan.ranking.access, []
    if plan.collections:
        existing = await documents.counts("collection", access)
        for name in plan.collections:
            if name not in existing:
                near = await anyio.to_thread.run_sync(close_names, name, existing, 1)
                warnings.append(f"{NO_COLLECTION} {name[:_MAX_CHARS]!r}{_hint(near)}")

    async def is_any(condition: Filter) -> bool:
        return bool(await documents.find(conjunction(access, normal(condition)), 1))

    missing = set()
    for key in sorted(named_keys(plan))[:MAX_KEYS]:
        if not await is_any(Exists(f"{METADATA}{key}")):
            missing.add(key)
            known = await anyio.to_thread.run_sync(known_keys, plan.ranking.scope)
            near = await anyio.to_thread.run_sync(close_names, key, known, _NEAREST)
            visible = [each for each in near if await is_any(Exists(f"{METADATA}{each}"))]
            hint = _hint(visible[:1]) or _field_hint(key)
            warnings.append(f"no document has the metadata key {key[:_MAX_CHARS]!r}{hint}")
    if plan.page.explain:
        for field, of_kind in sorted(set(_metadata_kinds(plan.ranking.filter))):
            if field.removeprefix(METADATA) not in missing and not await is_any(_having(field, of_kind)):
                warnings.append(f"no document has a {of_kind} in {field[:_MAX_CHARS]!r}")
    return tuple(warnings)


def _hint(nearest: list[str]) -> str:
    return f"; the nearest is {nearest[0][:_MAX_CHARS]!r}" if nearest else ""


def _field_hint(key: str) -> str:
    """A hint at a field of documents: in the short form of a filter, other names are keys of the metadata."""
    field = nearest(key, FIELDS)
    return f"; the nearest is the field {field!r}" if field else ""


def _metadata_kinds(condition: Filter) -> Iterator[tuple[str, str]]:
    """The metadata fields of a filter, with the kinds of the values that it compares them with."""
    match condition:
        case And(filters) | Or(filters):
            for each in filters:
                yield from _metadata_kinds(each)
        case Not(inner):
            yield from _metadata_kinds(inner)
        case Eq(field, value):
            yield from _metadata_kinds(In(field, (value,)))
        case In(field, values):
            if field.startswith(METADATA):
                yield from ((field, kind(value)) for value in values)
        case Range(field):
            if field.startswith(METADATA):
                yield field, "number"
        case Exists():
            return
        case _:
            assert_never(condition)


def _having(field: str, of_kind: str) -> Filter:
    """The documents with a value of a kind; a text beside values of other kinds does not count."""
    numbers, truths = Range(field, gte=-sys.float_info.max), In(field, (False, True))
    match of_kind:
        case "number":
            return numbers
        case "truth":
            return truths
        case _:
            return And((Exists(field), Not(numbers), Not(truths)))
