"""Judged queries beside a corpus: ``queries.jsonl``, with ``qrels/test.tsv`` or ``qrels.tsv``, as BEIR has them, or
``qrels.trec``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orchestrator.evaluation.judgments import BadDataset, JudgedQueries, read_judged_queries
from orchestrator.indexing.corpus import CORPUS_FILES, corpus_file

_QREL_FILES = ("qrels/test.tsv", "qrels.tsv", "qrels.trec")


@dataclass(frozen=True)
class Dataset(JudgedQueries):
    """Judged queries, and the documents that they are about.

    :param corpus: the file with the documents.
    """

    folder: Path
    corpus: Path


def read_dataset(folder: Path) -> Dataset:
    """Read the queries and judgments of a folder with documents.

    :raises BadDataset: if a file is missing, a line cannot be read, or a judged query has no text.
    """
    try:
        corpus = corpus_file(folder)
    except FileExistsError as error:
        raise BadDataset(str(error)) from error
    if not folder.is_dir():
        raise BadDataset(f"there is no folder {folder}")
    if corpus is None:
        raise BadDataset(f"{folder} is not a data set: it has neither {' nor '.join(CORPUS_FILES)}")
    qrels = next((folder / name for name in _QREL_FILES if (folder / name).is_file()), None)
    if qrels is None:
        others = sorted(path.name for path in (folder / "qrels").glob("*.tsv"))
        hint = f"; of qrels/{', qrels/'.join(others)} copy the one that is meant to qrels.tsv" if others else ""
        raise BadDataset(f"{folder} has no judgments: none of {', '.join(_QREL_FILES)}{hint}")
    judged = read_judged_queries(folder.resolve().name, folder / "queries.jsonl", qrels)
    return Dataset(judged.name, judged.queries, judged.judgments, judged.unjudged, folder, corpus)
