"""A folder with the judgments of one person, which grows judgment by judgment: ``queries.jsonl`` and ``qrels.tsv``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from orchestrator.evaluation.judgments import BadDataset, QueryLine, read_judgments, read_queries

_HEADING = "query-id\tcorpus-id\tscore\n"


class JudgedFolder:
    """The judgments in a folder. Each is on the disk when it was added, so that an interrupted session loses none.

    :raises BadDataset: if the files of an earlier session cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.queries_file, self.judgments_file = folder / "queries.jsonl", folder / "qrels.tsv"
        folder.mkdir(parents=True, exist_ok=True)
        queries = read_queries(self.queries_file) if self.queries_file.exists() else ()
        self._ids = {each.text: each.id for _, each in queries}
        self._judged = read_judgments(self.judgments_file) if self.judgments_file.exists() else {}

    @property
    def count(self) -> int:
        """Number of judgments."""
        return sum(map(len, self._judged.values()))

    @property
    def judged_queries(self) -> int:
        """Number of queries with judgments."""
        return len(self._judged)

    def judged(self, query: str) -> Collection[str]:
        """The ids of the documents that are judged for a query."""
        return self._judged.get(self._ids.get(query, ""), {}).keys()

    def add(self, query: str, document: str, relevance: int) -> None:
        """Add a judgment.

        :raises BadDataset: if the id of the document has a tab or a line break, which the file cannot have.
        """
        if not document.isprintable():
            raise BadDataset(f"the document {document!r} cannot be judged: its id has control characters")
        id_ = self._ids.get(query)
        if id_ is None:
            taken = set(self._ids.values())
            id_ = next(name for n in range(len(taken) + 1) if (name := f"q{n + 1}") not in taken)
            _append(self.queries_file, msgspec.json.encode(QueryLine(id_, query)).decode() + "\n")
            self._ids[query] = id_
        heading = "" if self.judgments_file.exists() else _HEADING
        _append(self.judgments_file, f"{heading}{id_}\t{document}\t{relevance}\n")
        self._judged.setdefault(id_, {})[document] = relevance


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(text)
