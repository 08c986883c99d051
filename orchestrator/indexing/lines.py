"""From lines of text to documents: each line good or bad by itself, and a bad one says why."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from adapters import Document
from adapters.document import ID_BYTES, Metadatum, trimmed
from orchestrator.complaint import complaint

_decoder = msgspec.json.Decoder(Document)

MAX_LIST = 10_000
"""Tags, entities, links or metadata keys of one document, at most."""


@dataclass(frozen=True, slots=True)
class Good:
    """A line that holds a document; lines count from 1."""

    line: int
    document: Document


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that does not; ``error`` names the field, what it holds and what is allowed."""

    line: int
    error: str


def read(lines: Iterable[bytes], max_bytes: int) -> Iterator[Good | Bad]:
    """One value a line that is not blank, in order. Nothing is held back, so any size of input will do."""
    for number, line in enumerate(lines, start=1):
        stripped = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip()
        if not stripped:
            continue
        if len(stripped) > max_bytes:
            yield Bad(number, f"the line has {len(stripped)} bytes, allowed are {max_bytes}")
            continue
        try:
            yield Good(number, checked(_decoder.decode(stripped)))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            yield Bad(number, complaint(error))
        except ValueError as error:
            yield Bad(number, str(error))


def checked(document: Document) -> Document:
    """What the types cannot say: id in bytes, lists trimmed and deduplicated, dates with a zone.

    :raises ValueError: naming the field and what is allowed.
    """
    if len(document.id.encode()) > ID_BYTES:
        raise ValueError(f"id: {len(document.id.encode())} bytes, allowed are {ID_BYTES} - at `$.id`")
    for name in ("tags", "entities", "links", "metadata"):
        if len(getattr(document, name) or ()) > MAX_LIST:
            raise ValueError(f"{name}: more than {MAX_LIST} - at `$.{name}`")
    if not (document.text.strip() or document.title.strip()):
        raise ValueError("text: empty, and so is the title; one of them must say something - at `$.text`")
    if document.created_at and document.created_at.tzinfo is None:
        raise ValueError("created_at: without a time zone, write 2026-01-31T12:00:00Z - at `$.created_at`")
    for key, value in document.metadata.items():
        if "\0" in key:
            raise ValueError(f"metadata: the key {key[:40]!r} holds a NUL - at `$.metadata`")
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, int) and not -(2**63) <= each < 2**63:
                raise ValueError(f"metadata: {key[:40]!r} holds a number of more than 64 bits - at `$.metadata`")
    return msgspec.structs.replace(
        document,
        tags=trimmed(document.tags),
        entities=None if document.entities is None else trimmed(document.entities),
        links=tuple(dict.fromkeys(document.links)),
        metadata={key: _once(value) for key, value in document.metadata.items()},
    )


def _once(value: Metadatum) -> Metadatum:
    """A list with its texts trimmed and each value once; ``1`` and ``true`` are two values."""
    if not isinstance(value, list):
        return value
    stripped = [each.strip() if isinstance(each, str) else each for each in value]
    return list({(type(each), each): each for each in stripped if each != ""}.values())


def good(lines: Iterable[Good | Bad], refuse: Callable[[Bad], None]) -> Iterator[Document]:
    """The documents of the good lines; every bad one is handed to ``refuse``."""
    for line in lines:
        if isinstance(line, Good):
            yield line.document
        else:
            refuse(line)
