"""The documents and queries of a BEIR folder."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.two_collections import in_two_collections
from orchestrator.indexing.beir import parse_beir
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine
from orchestrator.service.service import Service


def read_queries(folder: Path) -> list[str]:
    """The texts of the queries, in the order of the file."""
    return [json.loads(line)["text"] for line in (folder / "queries.jsonl").read_text().splitlines()]


async def index_folder(service: Service, folder: Path, is_divided: bool = True) -> None:
    """Index the corpus with its graph files.

    :param is_divided: whether the documents are in two collections, or all in the default one.
    :raises SystemExit: if a line is invalid, or a replica does not have all documents.
    """
    lines = map(_divided, parse_beir(folder)) if is_divided else parse_beir(folder)
    report = await service.documents.index(lines, service.anonymous, _refuse)
    if report.pending or report.rejected:
        raise SystemExit(f"not all documents were indexed: {report.pending} {report.rejected}")


def _divided(line: ParsedLine) -> ParsedLine:
    return ValidLine(line.line, in_two_collections(line.document)) if isinstance(line, ValidLine) else line


def _refuse(line: InvalidLine) -> None:
    raise SystemExit(f"line {line.line}: {line.error}")
