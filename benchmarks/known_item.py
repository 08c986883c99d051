"""Searches for one document each: the mean reciprocal rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from adapters import Document
from benchmarks.corpus import index_documents
from orchestrator.bootstrap import open_service
from orchestrator.schema.search_input import search_request
from orchestrator.settings import load

_DEPTH = 10


async def reciprocal_ranks(
    documents: Sequence[Document], queries: Sequence[tuple[str, str]], runs: Mapping[str, Mapping[str, object]]
) -> dict[str, float]:
    """MRR@10 of each run, over an index of some documents.

    :param queries: each with the id of the document that it asks for, or one of its chunks.
    :param runs: by name, the fields of its requests besides the query.
    """
    with TemporaryDirectory() as folder:
        async with open_service(load(data_dir=Path(folder), source_timeout_ms=60_000)) as service:
            await index_documents(service, documents)
            await service.maintenance.optimize(lambda _: None)
            found: dict[str, float] = {}
            for name, fields in runs.items():
                ranks = []
                for text, wanted in queries:
                    request = search_request(
                        {"query": text, "mode": "hybrid", "limit": _DEPTH, "timeout_ms": 60_000, **fields}
                    )
                    response = await service.search.search(request, service.anonymous, "known-item")
                    ids = [hit.parent_id or hit.id for hit in response.hits]
                    ranks.append(1 / (1 + ids.index(wanted)) if wanted in ids else 0.0)
                found[name] = sum(ranks) / len(ranks)
    return found
