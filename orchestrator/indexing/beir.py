"""Data sets as BEIR lays them out, with a graph beside them where there is one.

``corpus.jsonl`` (``_id``, ``title``, ``text``); and if there: ``edges.jsonl`` (``source``, ``target``, ``type``,
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
from adapters.document import Metadatum, Name, Weight
from orchestrator.complaint import complaint
from orchestrator.indexing.lines import Bad, Good, checked

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


def is_folder(path: Path) -> bool:
    """Whether this is such a data set."""
    return (path / "corpus.jsonl").is_file()


def read(folder: Path) -> Iterator[Good | Bad]:
    """The corpus, each passage with its links and mentions; the graph's files are held in memory.

    Without ``mentions.jsonl`` the documents come without entities, which asks for extracting them.

    A line of a graph file that cannot be read is told first, with the file's name, and left out.
    """
    bad: list[Bad] = []
    links: dict[str, list[Link]] = defaultdict(list)
    for edge in _rows(folder / "edges.jsonl", _Edge, bad):
        if edge.source != edge.target:
            links[edge.source].append(Link(edge.target, edge.type, edge.weight))
    names = {entity.id: entity.name for entity in _rows(folder / "entities.jsonl", _Entity, bad)}
    mentioned: dict[str, list[str]] = defaultdict(list)
    for mention in _rows(folder / "mentions.jsonl", _Mention, bad):
        mentioned[mention.doc].append(names.get(mention.entity, mention.entity))
    yield from bad
    has_mentions = (folder / "mentions.jsonl").is_file()
    decoder = msgspec.json.Decoder(_Passage)
    with (folder / "corpus.jsonl").open("rb") as lines:
        for number, line in enumerate(_unmarked(lines), start=1):
            if not line.strip():
                continue
            try:
                passage = decoder.decode(line)
                document = Document(
                    id=passage.id,
                    title=passage.title,
                    # A title without a text is a document here: some catalogues have no more than that.
                    text=passage.text,
                    metadata=passage.metadata,
                    entities=tuple(mentioned[passage.id]) if has_mentions else None,
                    links=tuple(links[passage.id]),
                )
                yield Good(number, checked(document))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                yield Bad(number, complaint(error))
            except ValueError as error:
                yield Bad(number, str(error))


def _unmarked(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without the byte-order mark that some editors put before the first."""
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix(BOM_UTF8)


def _rows(path: Path, kind: type[T], bad: list[Bad]) -> Iterator[T]:
    if not path.is_file():
        return
    decoder = msgspec.json.Decoder(kind)
    with path.open("rb") as lines:
        for number, line in enumerate(_unmarked(lines), start=1):
            if line.strip():
                try:
                    yield decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    bad.append(Bad(number, f"{path.name}: {complaint(error)}"))
