"""Documents of each scope, for measurements of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from adapters import SENSITIVITIES, Record, Scope, Sensitivity, Viewer
from adapters.model.protection import is_visible
from adapters.ports import DocumentReader
from orchestrator.auth.visibility import access_filter

_SAMPLE = 1_000
"""Documents drawn from all scopes together."""
MIN_DOCUMENTS = 50
"""Minimum documents in a scope: with fewer, similar and dissimilar ones cannot be distinguished."""


@dataclass(frozen=True, slots=True)
class ScopeSample:
    """Some documents of a scope, and the number of all."""

    records: list[Record]
    count: int


async def sample_by_access(documents: DocumentReader) -> Mapping[tuple[Scope, Sensitivity], ScopeSample]:
    """A sample of what may be seen of each scope at each clearance, if that is enough documents.

    Only the clearances are listed at which more is seen than at the one below.

    :raises AdapterError: if the documents cannot be read.
    """
    by_scope: dict[Scope, list[Record]] = defaultdict(list)
    for record in await documents.sample(_SAMPLE):
        by_scope[Scope(record.tenant, record.environment)].append(record)
    samples = {}
    for scope, records in by_scope.items():
        for clearance in SENSITIVITIES:
            if any(record.document.sensitivity == clearance for record in records):
                visible = [record for record in records if is_visible(record.document.sensitivity, clearance)]
                count = sum((await documents.counts("collection", access_filter(scope, Viewer(clearance)))).values())
                if count >= MIN_DOCUMENTS:
                    samples[scope, clearance] = ScopeSample(visible, count)
    return samples
