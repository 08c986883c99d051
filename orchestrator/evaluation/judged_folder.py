"""A folder with the judgments of one person, which grows judgment by judgment: ``queries.jsonl`` and ``qrels.tsv``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from orchestrator.evaluation.judgments import BadDataset, QueryLine, first_of, read_judgments, read_queries

_HEADING = "query-id\tcorpus-id\tscore\n"


class JudgedFolder:
    """The judgments in a folder, which is created with the first one. Each is on the disk when it was added, so that an
    interrupted session loses none.

    :param preferred_ids: of queries, by their texts; where there is none, or it is taken, the next of q1, q2, ….
    :raises BadDataset: if the files of an earlier session cannot be read, or one judges queries that the other lacks.
    """

    def __init__(self, folder: Path, preferred_ids: Mapping[str, str] | None = None) -> None:
        if folder.exists() and not folder.is_dir():
            raise BadDataset(f"{folder} is a file; judgments need a folder")
        self._folder = folder
        self._preferred_ids = preferred_ids or {}
        self.queries_file, self.judgments_file = folder / "queries.jsonl", folder / "qrels.tsv"
        self._ids: dict[str, str] = {}
        known = set()
        for _, query in read_queries(self.queries_file) if self.queries_file.exists() else ():
            self._ids.setdefault(query.text, query.id)
            known.add(query.id)
        self._judged = read_judgments(self.judgments_file) if self.judgments_file.exists() else {}
        if without := [repr(id_) for id_ in self._judged if id_ not in known]:
            lacks = f"which {self.queries_file} does not have"
            raise BadDataset(f"{self.judgments_file} judges the query {first_of(without)}, {lacks}")
        self._taken_ids = known

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

        :raises OSError: if it cannot be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        id_ = self._ids.get(query)
        if id_ is None:
            id_ = self._ids[query] = self._new_id(query)
            self._taken_ids.add(id_)
            _append(self.queries_file, msgspec.json.encode(QueryLine(id_, query)).decode() + "\n")
        heading = "" if self.judgments_file.exists() else _HEADING
        _append(self.judgments_file, f"{heading}{id_}\t{document}\t{relevance}\n")
        self._judged.setdefault(id_, {})[document] = relevance

    def _new_id(self, query: str) -> str:
        preferred = self._preferred_ids.get(query, "")
        if preferred and preferred not in self._taken_ids:
            return preferred
        numbered = (f"q{number}" for number in range(1, len(self._taken_ids) + 2))
        return next(each for each in numbered if each not in self._taken_ids)


def _append(path: Path, text: str) -> None:
    """Append to a file, whose last line may lack its end."""
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, 2)
            if file.read() != b"\n":
                text = f"\n{text}"
        file.write(text.encode())
