"""Run and qrels files as ``trec_eval`` reads them; ``ir_measures`` reads the runs.

A run: ``query Q0 document rank score tag``. Judgments: ``query 0 document relevance``. ``ir_measures`` has no writer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

import ir_measures

from orchestrator.evaluation.judgments import BadDataset, Judgments, read_lines

Run = Mapping[str, Sequence[tuple[str, float]]]
"""Documents and their scores by query, best first."""

_COLUMNS = 6


def read_run(path: Path) -> Run:
    """Read a run file.

    :raises BadDataset: if it cannot be read; the message names the line.
    """
    run: dict[str, dict[str, float]] = {}
    for number, line in read_lines(path):
        try:
            # One line at a time: its errors have no line numbers, and it ignores additional columns.
            # With a line end: a text without one is read as a file name.
            (scored,) = ir_measures.read_trec_run(f"{line}\n")  # type: ignore[no-untyped-call]
        except ValueError:
            scored = None
        if scored is None or len(line.split()) != _COLUMNS or not isfinite(scored.score):
            expected = f"{_COLUMNS} columns: query Q0 document rank score tag"
            raise BadDataset(f"{path}, line {number}: {line[:80]!r} is not {expected}")
        run.setdefault(scored.query_id, {})[scored.doc_id] = scored.score
    return {query: sorted(scores.items(), key=lambda item: -item[1]) for query, scores in run.items()}


def write_run(path: Path, run: Run, tag: str) -> None:
    """Write a run file.

    :raises BadDataset: if an id contains white space, which the format cannot express.
    """
    lines = [
        f"{_column(query)} Q0 {_column(document)} {rank} {score!r} {tag}\n"
        for query, scores in run.items()
        for rank, (document, score) in enumerate(scores, start=1)
    ]
    path.write_text("".join(lines), "utf-8")


def write_judgments(path: Path, judgments: Judgments) -> None:
    """Write a qrels file; ids as in :func:`write_run`."""
    lines = [
        f"{_column(query)} 0 {_column(document)} {relevance}\n"
        for query, judged in judgments.items()
        for document, relevance in judged.items()
    ]
    path.write_text("".join(lines), "utf-8")


def _column(id_: str) -> str:
    if len(id_.split()) != 1 or id_ != id_.strip():
        raise BadDataset(f"the id {id_[:80]!r} contains white space, which a TREC file cannot express")
    return id_
