"""Data sets in the format of BEIR, with graph files beside them where there is a graph.

``corpus.jsonl`` (``_id``, ``title``, ``text``); and optionally: ``edges.jsonl`` (``source``, ``target``, ``type``,
``weight``), ``mentions.jsonl`` (``doc``, ``entity``), ``entities.jsonl`` (``_id``, ``name``).
Thakur et al.: "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models", 2021.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from adapters import Document, Link
from adapters.model.document import Metadatum, Name, Weight
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine, checked, describe_line_error, size_error

T = TypeVar("T", bound=msgspec.Struct)


class _Passage(msgspec.Struct, rename={"id": "_id"}):
    id: Name
    text: str
    title: str = ""
    metadata: dict[str, Metadatum] = {}


class _Edge(msgspec.Struct):
    source: Name
    target: Name
    type: Name = "link"
    weight: Weight = 1.0


class _Mention(msgspec.Struct):
    doc: str
    entity: str


class _Entity(msgspec.Struct, rename={"id": "_id"}):
    id: str
    name: str


def parse_beir(folder: Path) -> Iterator[ParsedLine]:
    """The corpus, each passage with its links and mentions. The graph files are read into memory.

    Without ``mentions.jsonl`` the documents have no entities, so that they are extracted.

    Invalid lines of the graph files come first, with the name of the file.
    """
    invalid: list[InvalidLine] = []
    links: dict[str, list[Link]] = defaultdict(list)
    for edge in _rows(folder / "edges.jsonl", _Edge, invalid):
        if edge.source != edge.target:
            links[edge.source].append(Link(edge.target, edge.type, edge.weight))
    names = {entity.id: entity.name for entity in _rows(folder / "entities.jsonl", _Entity, invalid)}
    entities: dict[str, list[str]] = defaultdict(list)
    for mention in _rows(folder / "mentions.jsonl", _Mention, invalid):
        entities[mention.doc].append(names.get(mention.entity, mention.entity))
    yield from invalid
    has_mentions = (folder / "mentions.jsonl").is_file()
    decoder = msgspec.json.Decoder(_Passage)
    with (folder / "corpus.jsonl").open("rb") as lines:
        for number, line in enumerate(_without_bom(lines), start=1):
            if not line.strip():
                continue
            if too_large := size_error(len(line.strip())):
                yield InvalidLine(number, too_large)
                continue
            try:
                passage = decoder.decode(line)
                document = Document(
                    id=passage.id,
                    title=passage.title,
                    # A title without a text is a document: some catalogues have nothing else.
                    text=passage.text,
                    metadata=passage.metadata,
                    entities=tuple(entities[passage.id]) if has_mentions else None,
                    links=tuple(links[passage.id]),
                )
                yield ValidLine(number, checked(document))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                yield InvalidLine(number, describe_line_error(error, line, _Passage))
            except ValueError as error:
                yield InvalidLine(number, str(error))


def _without_bom(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without the byte-order mark that some editors write before the first one."""
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix(BOM_UTF8)


def _rows(path: Path, kind: type[T], invalid: list[InvalidLine]) -> Iterator[T]:
    if not path.is_file():
        return
    decoder = msgspec.json.Decoder(kind)
    with path.open("rb") as lines:
        for number, line in enumerate(_without_bom(lines), start=1):
            if line.strip():
                try:
                    yield decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    invalid.append(InvalidLine(number, f"{path.name}: {describe_line_error(error, line, kind)}"))
