"""Run and qrels files as ``trec_eval`` reads them: columns with white space between them.

A run: ``query Q0 document rank score tag``. Judgments: ``query 0 document relevance``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

from orchestrator.evaluation.dataset import BadDataset, Judgments

Run = Mapping[str, Sequence[tuple[str, float]]]
"""By query: documents and their scores, best first."""

_COLUMNS = 6


def read_run(path: Path) -> Run:
    """Read a run file.

    :raises BadDataset: if it cannot be read; the message names the line.
    """
    found: dict[str, dict[str, float]] = {}
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataset(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            query, _, document, _, written, _ = line.split()
            found.setdefault(query, {})[document] = _finite(written)
        except ValueError as error:
            wanted = f"{_COLUMNS} columns: query Q0 document rank score tag"
            raise BadDataset(f"{path}, line {number}: {line[:80]!r} is not {wanted}") from error
    return {query: sorted(hits.items(), key=lambda hit: -hit[1]) for query, hits in found.items()}


def _finite(written: str) -> float:
    if not isfinite(score := float(written)):
        raise ValueError(f"{written} is no score")
    return score


def write_run(path: Path, run: Run, tag: str) -> None:
    """Write a run file.

    :raises BadDataset: if an id has white space in it, which the format has no way to say.
    """
    lines = [
        f"{_word(query)} Q0 {_word(document)} {rank} {score!r} {tag}\n"
        for query, hits in run.items()
        for rank, (document, score) in enumerate(hits, start=1)
    ]
    path.write_text("".join(lines), "utf-8")


def write_judgments(path: Path, judgments: Judgments) -> None:
    """Write a qrels file; ids as in :func:`write_run`."""
    lines = [
        f"{_word(query)} 0 {_word(document)} {score}\n"
        for query, judged in judgments.items()
        for document, score in judged.items()
    ]
    path.write_text("".join(lines), "utf-8")


def _word(id_: str) -> str:
    if len(id_.split()) != 1 or id_ != id_.strip():
        raise BadDataset(f"the id {id_[:80]!r} has white space in it, and a TREC file cannot hold that")
    return id_
