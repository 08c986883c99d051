"""Judged queries: their texts, and which documents are relevant for each.

Queries are lines of JSON with ``_id`` and ``text``, as BEIR has them. Judgments are rows of query, document and
relevance with tabs between them, or TREC's ``query 0 document relevance`` in a file ``*.trec`` or ``*.qrels``.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from orchestrator.schema.decode import decoded, describe_decode_error

Judgments = Mapping[str, Mapping[str, int]]
"""The relevance by query and document; 0 and less is not relevant."""

_MAX_RELEVANCE = 1_000_000
_MAX_NAMED = 5
_TSV_COLUMNS = 3
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TREC = frozenset({".trec", ".qrels"})


class BadDataset(ValueError):
    """A data set cannot be read: the message names the file, the line and what is wrong."""


class QueryLine(msgspec.Struct, rename={"id": "_id"}):
    """A line of a file of queries."""

    id: str
    text: str


@dataclass(frozen=True)
class JudgedQueries:
    """The judged queries, by id in the order of the file, and the judgments.

    :param name: of the set, in reports.
    :param unjudged: ids of the queries that have no judgments; they are not searched.
    """

    name: str
    queries: Mapping[str, str]
    judgments: Judgments
    unjudged: tuple[str, ...]

    @property
    def judged_documents(self) -> set[str]:
        """The ids that any judgment names."""
        return {document for judged in self.judgments.values() for document in judged}

    @property
    def without_relevant(self) -> list[str]:
        """Ids of the queries without a relevant document, for which each measure is 0."""
        return [id_ for id_ in self.queries if not any(relevance > 0 for relevance in self.judgments[id_].values())]


def read_judged_queries(name: str, queries: Path, qrels: Path) -> JudgedQueries:
    """Read the queries and the judgments.

    :raises BadDataset: if a file or a line cannot be read, there are no judgments, or a judged query has no text.
    """
    judgments = read_judgments(qrels)
    if not judgments:
        raise BadDataset(f"{qrels} has no judgments: there is nothing to measure")
    texts: dict[str, str] = {}
    for number, query in read_queries(queries):
        if query.id in texts or not query.text.strip():
            wrong = "occurs twice" if query.id in texts else "has no text"
            raise BadDataset(f"{queries}, line {number}: the query {query.id!r} {wrong}")
        texts[query.id] = query.text
    if not texts:
        raise BadDataset(f"{queries} has no queries: there is nothing to search")
    if without := [id_ for id_ in judgments if id_ not in texts]:
        raise BadDataset(_without_text(queries, qrels, judgments, texts, without))
    judged = {id_: text for id_, text in texts.items() if id_ in judgments}
    return JudgedQueries(name, judged, judgments, tuple(id_ for id_ in texts if id_ not in judgments))


def _without_text(
    queries: Path, qrels: Path, judgments: Judgments, texts: Mapping[str, str], without: Sequence[str]
) -> str:
    """Which judged queries have no text, and the likely reason."""
    named = first_of([repr(id_) for id_ in without])
    message = f"{queries} has no query {named}: {len(without)} of {len(judgments)} that {qrels} judges"
    documents = {document for judged in judgments.values() for document in judged}
    if len(without) == len(judgments) and documents & texts.keys():
        return f"{message}; its columns are the query, then the document"
    return message


def first_of(texts: Sequence[str]) -> str:
    """The first of many texts, with commas between them."""
    return f"{', '.join(texts[:_MAX_NAMED])}{', …' if len(texts) > _MAX_NAMED else ''}"


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file that are not blank, with their numbers from 1.

    :raises BadDataset: if the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        found = "UTF-16" if error.object[:2] in _UTF_16 else "another encoding"
        advice = f"`iconv --from-code ENCODING --to-code UTF-8 {path}`"
        raise BadDataset(f"{path} is not UTF-8 but {found}: write it again with {advice}") from error
    except OSError as error:
        raise BadDataset(f"{path} cannot be read: {error.strerror}") from error


def read_queries(path: Path) -> Iterator[tuple[int, QueryLine]]:
    """The lines of a file of queries, with their numbers from 1.

    :raises BadDataset: if the file or a line cannot be read.
    """
    decoder = msgspec.json.Decoder(QueryLine)
    for number, line in read_lines(path):
        try:
            query = decoder.decode(line)
        except msgspec.DecodeError as error:
            raise BadDataset(
                f"{path}, line {number}: {describe_decode_error(error, QueryLine, decoded(line.encode()))}"
            ) from error
        yield number, query


def read_judgments(path: Path) -> dict[str, dict[str, int]]:
    """The judgments in a file.

    :raises BadDataset: if the file or a line cannot be read, or two judgments contradict each other.
    """
    judgments: dict[str, dict[str, int]] = {}
    for number, line in read_lines(path):
        is_trec = path.suffix in _TREC
        columns = line.split() if is_trec else line.split("\t")
        if number == 1 and columns[-1] == "score":
            continue
        try:
            query, document, text = (columns[0], *columns[2:]) if is_trec else columns
            relevance = int(text)
        except ValueError as error:
            heading = ", or a heading that ends in `score`" if number == 1 else ""
            expected = f"{_expected(line, is_trec)}{heading}"
            raise BadDataset(f"{path}, line {number}: {line[:80]!r} is not {expected}") from error
        if not -_MAX_RELEVANCE <= relevance <= _MAX_RELEVANCE:
            allowed = f"allowed are {-_MAX_RELEVANCE} to {_MAX_RELEVANCE}"
            raise BadDataset(f"{path}, line {number}: the relevance is {text[:80]}, {allowed}")
        before = judgments.setdefault(query, {}).setdefault(document, relevance)
        if before != relevance:
            raise BadDataset(
                f"{path}, line {number}: {query!r} and {document!r} have the relevance {relevance}, and {before} before"
            )
    return judgments


def _expected(line: str, is_trec: bool) -> str:
    """What a judgment looks like, and the likely reason why this one does not."""
    if is_trec:
        return "`query 0 document relevance`, the last a whole number"
    columns = len(line.split())
    if "\t" not in line and columns == _TSV_COLUMNS:
        hint = ": it has spaces instead"
    elif columns == _TSV_COLUMNS + 1:
        hint = ": if it is of TREC, name the file *.trec"
    else:
        hint = next((f": it has {each!r} instead" for each in ",;" if line.count(each) == _TSV_COLUMNS - 1), "")
    return f"3 columns with tabs between them, the last a whole number{hint}"
