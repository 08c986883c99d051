"""Judged queries: ``queries.jsonl`` beside ``qrels/test.tsv`` or ``qrels.tsv``, as BEIR has them, or ``qrels.trec``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from orchestrator.complaint import complaint
from orchestrator.indexing import beir

_JUDGMENTS = ("qrels/test.tsv", "qrels.tsv", "qrels.trec")

Judgments = Mapping[str, Mapping[str, int]]
"""By query, by document: how relevant it is; 0 and less is not at all."""


class BadDataset(ValueError):
    """A data set cannot be read: the message names the file, the line and what is wrong."""


class _Query(msgspec.Struct, rename={"id": "_id"}):
    id: str
    text: str


@dataclass(frozen=True)
class Dataset:
    """The queries that somebody has judged, by id in the order of the file, and the judgments."""

    folder: Path
    queries: Mapping[str, str]
    judgments: Judgments

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.folder.resolve().name


def read(folder: Path) -> Dataset:
    """Read the queries and judgments of a BEIR folder.

    :raises BadDataset: if a file is missing, a line cannot be read, or a judged query has no text.
    """
    if not beir.is_folder(folder):
        raise BadDataset(f"{folder} is no BEIR data set: it has no corpus.jsonl")
    judgments = _judgments(folder)
    if not judgments:
        raise BadDataset(f"{folder} has no judgments: there is nothing to measure")
    texts: dict[str, str] = {}
    for number, query in _queries(folder / "queries.jsonl"):
        if query.id in texts or not query.text.strip():
            wrong = "stands there twice" if query.id in texts else "has no text"
            raise BadDataset(f"{folder / 'queries.jsonl'}, line {number}: the query {query.id!r} {wrong}")
        texts[query.id] = query.text
    if without := [id_ for id_ in judgments if id_ not in texts]:
        raise BadDataset(f"{folder / 'queries.jsonl'} has no query {without[0]!r}, which is judged")
    return Dataset(folder, {id_: text for id_, text in texts.items() if id_ in judgments}, judgments)


def _queries(path: Path) -> Iterator[tuple[int, _Query]]:
    decoder = msgspec.json.Decoder(_Query)
    for number, line in _lines(path):
        try:
            query = decoder.decode(line)
        except msgspec.DecodeError as error:
            raise BadDataset(f"{path}, line {number}: {complaint(error)}") from error
        yield number, query


def _judgments(folder: Path) -> dict[str, dict[str, int]]:
    path = next((folder / name for name in _JUDGMENTS if (folder / name).is_file()), None)
    if path is None:
        raise BadDataset(f"{folder} has no judgments: none of {', '.join(_JUDGMENTS)}")
    found: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        trec = path.suffix == ".trec"
        columns = line.split() if trec else line.split("\t")
        if number == 1 and columns[-1] == "score":
            continue
        try:
            query, document, score = (columns[0], *columns[2:]) if trec else columns
            found.setdefault(query, {})[document] = int(score)
        except ValueError as error:
            wanted = "`query 0 document relevance`" if trec else "3 columns with tabs between them"
            raise BadDataset(
                f"{path}, line {number}: {line[:80]!r} is not {wanted}, the last a whole number"
            ) from error
    return found


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataset(f"{path} cannot be read: {error}") from error
