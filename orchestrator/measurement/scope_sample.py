"""Documents of each scope, for measurements of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from adapters import SENSITIVITIES, DocumentReader, Record, Scope
from adapters.model.filter import Filter
from orchestrator.auth.visibility import access_filter

_SAMPLE = 1_000
"""Documents drawn from all scopes together."""
MIN_DOCUMENTS = 50
"""Minimum documents in a scope: with fewer, similar and dissimilar ones cannot be distinguished."""


@dataclass(slots=True)
class ScopeSample:
    """Some documents of a scope, and the number of all."""

    records: list[Record] = field(default_factory=list)
    count: int = 0


async def sample_by_scope(documents: DocumentReader) -> Mapping[Scope, ScopeSample]:
    """A sample of every scope that has enough documents.

    :raises AdapterError: if the documents cannot be read.
    """
    by_scope: dict[Scope, ScopeSample] = defaultdict(ScopeSample)
    for record in await documents.sample(_SAMPLE):
        by_scope[Scope(record.tenant, record.environment)].records.append(record)
    for scope, sample in by_scope.items():
        sample.count = sum((await documents.counts("collection", all_of(scope))).values())
    return {scope: sample for scope, sample in by_scope.items() if sample.count >= MIN_DOCUMENTS}


def all_of(scope: Scope) -> Filter:
    """Every document of a scope, in normal form."""
    return access_filter(scope, SENSITIVITIES[-1])
