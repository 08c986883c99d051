"""The documents and queries of a BEIR folder."""

from __future__ import annotations

import json
from pathlib import Path

from orchestrator.indexing.beir import parse_beir
from orchestrator.indexing.ndjson import InvalidLine
from orchestrator.service.service import Service


def read_queries(folder: Path) -> list[str]:
    """The texts of the queries, in the order of the file."""
    return [json.loads(line)["text"] for line in (folder / "queries.jsonl").read_text().splitlines()]


async def index_folder(service: Service, folder: Path) -> None:
    """Index the corpus with its graph files.

    :raises SystemExit: if a line is invalid, or a replica does not have all documents.
    """
    report = await service.documents.index(parse_beir(folder), service.anonymous, _refuse)
    if report.pending or report.rejected:
        raise SystemExit(f"not all documents were indexed: {report.pending} {report.rejected}")


def _refuse(line: InvalidLine) -> None:
    raise SystemExit(f"line {line.line}: {line.error}")
