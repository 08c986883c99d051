"""Judged queries beside a corpus: ``queries.jsonl``, with ``qrels/test.tsv`` or ``qrels.tsv``, as BEIR has them, or
``qrels.trec``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from orchestrator.indexing.corpus import CORPUS_FILES, corpus_file
from orchestrator.schema.decode import decoded, describe_decode_error

_QREL_FILES = ("qrels/test.tsv", "qrels.tsv", "qrels.trec")

Judgments = Mapping[str, Mapping[str, int]]
"""The relevance by query and document; 0 and less is not relevant."""


class BadDataset(ValueError):
    """A data set cannot be read: the message names the file, the line and what is wrong."""


class _QueryLine(msgspec.Struct, rename={"id": "_id"}):
    id: str
    text: str


@dataclass(frozen=True)
class Dataset:
    """The judged queries, by id in the order of the file, and the judgments.

    :param corpus: the file with the documents.
    """

    folder: Path
    corpus: Path
    queries: Mapping[str, str]
    judgments: Judgments

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.folder.resolve().name


def read_dataset(folder: Path) -> Dataset:
    """Read the queries and judgments of a folder with documents.

    :raises BadDataset: if a file is missing, a line cannot be read, or a judged query has no text.
    """
    try:
        corpus = corpus_file(folder)
    except FileExistsError as error:
        raise BadDataset(str(error)) from error
    if corpus is None:
        raise BadDataset(f"{folder} is not a data set: it has neither {' nor '.join(CORPUS_FILES)}")
    judgments = _read_judgments(folder)
    if not judgments:
        raise BadDataset(f"{folder} has no judgments: there is nothing to measure")
    texts: dict[str, str] = {}
    for number, query in _read_queries(folder / "queries.jsonl"):
        if query.id in texts or not query.text.strip():
            wrong = "occurs twice" if query.id in texts else "has no text"
            raise BadDataset(f"{folder / 'queries.jsonl'}, line {number}: the query {query.id!r} {wrong}")
        texts[query.id] = query.text
    if without := [id_ for id_ in judgments if id_ not in texts]:
        raise BadDataset(f"{folder / 'queries.jsonl'} has no query {without[0]!r}, which is judged")
    return Dataset(folder, corpus, {id_: text for id_, text in texts.items() if id_ in judgments}, judgments)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file that are not blank, with their numbers from 1.

    :raises BadDataset: if the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataset(f"{path} cannot be read: {error}") from error


def _read_queries(path: Path) -> Iterator[tuple[int, _QueryLine]]:
    decoder = msgspec.json.Decoder(_QueryLine)
    for number, line in read_lines(path):
        try:
            query = decoder.decode(line)
        except msgspec.DecodeError as error:
            raise BadDataset(
                f"{path}, line {number}: {describe_decode_error(error, _QueryLine, decoded(line.encode()))}"
            ) from error
        yield number, query


def _read_judgments(folder: Path) -> dict[str, dict[str, int]]:
    path = next((folder / name for name in _QREL_FILES if (folder / name).is_file()), None)
    if path is None:
        raise BadDataset(f"{folder} has no judgments: none of {', '.join(_QREL_FILES)}")
    judgments: dict[str, dict[str, int]] = {}
    for number, line in read_lines(path):
        is_trec = path.suffix == ".trec"
        columns = line.split() if is_trec else line.split("\t")
        if number == 1 and columns[-1] == "score":
            continue
        try:
            query, document, relevance = (columns[0], *columns[2:]) if is_trec else columns
            judgments.setdefault(query, {})[document] = int(relevance)
        except ValueError as error:
            expected = "`query 0 document relevance`" if is_trec else "3 columns with tabs between them"
            raise BadDataset(
                f"{path}, line {number}: {line[:80]!r} is not {expected}, the last a whole number"
            ) from error
    return judgments
