"""Parses lines of NDJSON to documents: each line is valid or invalid by itself, and an invalid one has a reason."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import IO, TypeAlias

import msgspec

from adapters import Document
from adapters.model import dates
from adapters.model.document import MAX_ID_BYTES, MAX_VALUE_CHARS, Metadatum, trimmed, values_of
from adapters.model.numbers import MAX_WHOLE, MIN_WHOLE
from adapters.model.protection import Visibility, check_name
from adapters.model.vectors import MAX_DIMENSION, packed
from orchestrator.schema.decode import decoded, describe_decode_error, syntax_error, with_whole_numbers

_decoder = msgspec.json.Decoder(Document)

MAX_DOCUMENT_BYTES = 1_048_576
"""Maximum size of one line."""
_MAX_LINE_END = 2
"""Bytes of a line end: CR LF."""
MAX_ITEMS = 10_000
"""Maximum number of tags, entities or links of one document."""
MAX_HEADINGS = 64
"""Maximum number of headings above a chunk."""
MAX_KEYS = 256
"""Maximum number of metadata keys of one document: each is a column of its segment."""
MAX_VALUES = 1_000
"""Maximum number of values in the metadata of one document: each number is sixteen terms of an index."""
MAX_NAME_CHARS = 512
"""Maximum length of a tag, an entity or the language."""
MAX_KEY_CHARS = 256
"""Maximum length of a metadata key, as in filters."""
TEXT_LISTS = ("tags", "topics", "keywords", "local_keywords", "query_expansion_keywords", "semantic_boosters")
"""Lists of names, each of which is trimmed and has each name once."""
TEXTS = ("title", "text", "summary", "local_summary", "text_before", "text_after")
"""Texts of any content."""
_MAX_LENGTHS = {
    **dict.fromkeys(TEXT_LISTS, MAX_ITEMS),
    "neighbor_chunk_ids": MAX_ITEMS,
    "entities": MAX_ITEMS,
    "links": MAX_ITEMS,
    "metadata": MAX_KEYS,
    "heading_path": MAX_HEADINGS,
}
_MAX_CHARS = {"metadata": MAX_KEY_CHARS, "url": MAX_VALUE_CHARS, "semantic_boosters": MAX_VALUE_CHARS}
_NEEDED: Mapping[Visibility, str] = {"private": "owner", "team": "team"}
"""The field without which a visibility says nothing."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
"""Control characters but tab, line feed, carriage return and next line (U+0085)."""
_SLICE_CHARS = 65_536
"""Control characters are removed from slices of this length: a regular expression holds the GIL, for up to 90 ms if a
text of a megabyte is searched at once."""


class ValidLine(msgspec.Struct, frozen=True, gc=False):
    """A line with a document; lines count from 1."""

    line: int
    document: Document


class InvalidLine(msgspec.Struct, frozen=True, gc=False):
    """A line without a document; ``error`` names the field, its value and what is allowed.

    The garbage collector, which stops all threads, does not visit lines: a body may have 100,000.
    """

    line: int
    error: str


ParsedLine: TypeAlias = ValidLine | InvalidLine


def parse_ndjson(file: IO[bytes], max_bytes: int = MAX_DOCUMENT_BYTES) -> Iterator[ParsedLine]:
    """One value for each line that is not blank, in order. The file may have any size, and so may its lines."""
    for number, (line, size) in enumerate(bounded_lines(file, max_bytes + _MAX_LINE_END), start=1):
        stripped = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip()
        is_whole = size == len(line)
        if is_whole and not stripped:
            continue
        if too_large := size_error(len(stripped) if is_whole else size, max_bytes):
            yield InvalidLine(number, too_large)
            continue
        try:
            yield ValidLine(number, checked(_decode(stripped)))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            yield InvalidLine(number, describe_line_error(error, stripped, Document))
        except ValueError as error:
            yield InvalidLine(number, str(error))


def bounded_lines(file: IO[bytes], max_bytes: int) -> Iterator[tuple[bytes, int]]:
    """At most this many bytes of each line, and the size of the whole line."""
    while line := file.readline(max_bytes):
        size, last = len(line), line
        while len(last) == max_bytes and not last.endswith(b"\n"):
            last = file.readline(max_bytes)
            size += len(last)
        yield line, size


def _decode(line: bytes) -> Document:
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError:
        if (fields := decoded(line)) is msgspec.UNSET:
            raise
        return from_fields(fields)


def from_fields(fields: object) -> Document:
    """A document from its fields, in which ``created_at`` may be a plain date or a number of seconds.

    :raises msgspec.ValidationError: if a field is unknown, or its value not allowed.
    :raises ValueError: if the date is not allowed.
    """
    if isinstance(fields, Mapping) and fields.get("created_at") is not None:
        try:
            fields = {**fields, "created_at": dates.moment(fields["created_at"])}
        except ValueError as error:
            raise ValueError(f"created_at: {error}") from error
    return msgspec.convert(with_whole_numbers(fields), Document)


def describe_line_error(
    error: msgspec.DecodeError | UnicodeDecodeError, line: bytes, kind: type[msgspec.Struct]
) -> str:
    """Why a line is not an object of a type."""
    if (content := decoded(line)) is msgspec.UNSET and (syntax := syntax_error(line)):
        return describe_decode_error(syntax)
    return describe_decode_error(error, kind, content)


def size_error(size: int, max_bytes: int = MAX_DOCUMENT_BYTES) -> str:
    """What is wrong with the size of a line; empty if nothing is."""
    return "" if size <= max_bytes else f"the line has {size} bytes, allowed are {max_bytes}"


def checked(document: Document) -> Document:
    """Check what the types cannot express: bytes of the id, trimmed and distinct lists, dates with a time zone.

    Control characters are refused in names and removed from texts, line breaks and tabs excepted.

    :raises ValueError: naming the field and what is allowed.
    """
    if len(document.id.encode()) > MAX_ID_BYTES:
        raise ValueError(f"id: {len(document.id.encode())} bytes, allowed are {MAX_ID_BYTES}")
    for name, limit in _MAX_LENGTHS.items():
        if (count := len(getattr(document, name) or ())) > limit:
            raise ValueError(f"{name}: {count}, allowed are {limit}")
    texts = {name: _without_control(text) for name in TEXTS if (text := getattr(document, name))}
    if not (texts.get("text", "").strip() or texts.get("title", "").strip()):
        raise ValueError("text: empty, and so is the title; one of them must not be empty")
    _check_together(document)
    values = sum(len(values_of(value)) for value in document.metadata.values())
    if values > MAX_VALUES:
        raise ValueError(f"metadata: {values} values, allowed are {MAX_VALUES}")
    for key, value in document.metadata.items():
        _check_metadatum(key, value)
    _check_vector(document.vector)
    cleaned = msgspec.structs.replace(
        document,
        **texts,
        **{name: trimmed(names) for name in TEXT_LISTS if (names := getattr(document, name))},
        neighbor_chunk_ids=trimmed(document.neighbor_chunk_ids),
        heading_path=tuple(heading for each in document.heading_path if (heading := each.strip())),
        entities=None if document.entities is None else trimmed(document.entities),
        links=tuple(dict.fromkeys(document.links)),
        metadata={key: _distinct(value) for key, value in document.metadata.items()},
    )
    for field, name in _names(cleaned):
        if len(name) > (limit := _MAX_CHARS.get(field, MAX_NAME_CHARS)):
            raise ValueError(f"{field}: {len(name)} characters, allowed are {limit}")
        if found := _CONTROL.search(name):
            raise ValueError(f"{field}: contains the control character U+{ord(found[0]):04X}")
    return cleaned


def _check_together(document: Document) -> None:
    """Check the fields that depend on each other, and the time zone of the date."""
    if document.created_at and document.created_at.tzinfo is None:
        raise ValueError(f"created_at: without a time zone, write {dates.ALLOWED}")
    if document.parent_end is not None and document.parent_end < (document.parent_start or 0):
        raise ValueError(
            f"parent_end: {document.parent_end}, allowed is parent_start ({document.parent_start or 0}) and more"
        )
    if (needed := _NEEDED.get(document.visibility)) and getattr(document, needed) is None:
        raise ValueError(f"{needed}: missing, a document with the visibility {document.visibility!r} needs one")
    for field, name in (("owner", document.owner), ("team", document.team)):
        if name is not None:
            check_name(field, name)


def _without_control(text: str) -> str:
    slices = (text[start : start + _SLICE_CHARS] for start in range(0, len(text), _SLICE_CHARS))
    return "".join(_CONTROL_IN_TEXT.sub("", each) for each in slices)


def _check_metadatum(key: str, value: Metadatum) -> None:
    if not key:
        raise ValueError("metadata: an empty key, allowed are keys of 1 to 256 characters")
    for each in values_of(value):
        if isinstance(each, float) and not isfinite(each):
            raise ValueError(f"metadata: {key[:40]!r} is {each}, allowed are finite numbers")
        if isinstance(each, int) and not MIN_WHOLE <= each <= MAX_WHOLE:
            raise ValueError(f"metadata: {key[:40]!r} has a whole number of more than 64 bits, allowed are those of 64")
        if isinstance(each, str) and len(each) > MAX_VALUE_CHARS:
            raise ValueError(
                f"metadata: {key[:40]!r} has a text of {len(each)} characters, allowed are {MAX_VALUE_CHARS}"
            )


def _check_vector(numbers: Sequence[float] | None) -> None:
    if not numbers:
        return  # how many are needed depends on the encoder
    if len(numbers) > MAX_DIMENSION:
        raise ValueError(f"vector: {len(numbers)} numbers, allowed are {MAX_DIMENSION}")
    try:
        packed(numbers)
    except ValueError as error:
        raise ValueError(f"vector: {error}") from error


def _names(document: Document) -> Iterator[tuple[str, str]]:
    """Every text of a document that names something, with the name of its field."""
    yield from (("id", document.id), ("collection", document.collection))
    for name, value in (
        ("parent_id", document.parent_id),
        ("url", document.url),
        ("language", document.language),
        ("chunker_version", document.chunker_version),
        ("section", document.section),
        ("window_id", document.window_id),
    ):
        if value is not None:
            yield name, value
    yield from (("heading_path", heading) for heading in document.heading_path)
    yield from ((field, name) for field in (*TEXT_LISTS, "neighbor_chunk_ids") for name in getattr(document, field))
    yield from (("entities", entity) for entity in document.entities or ())
    yield from (("links", each) for link in document.links for each in (link.target, link.type))
    yield from (("metadata", key) for key in document.metadata)


def _distinct(value: Metadatum) -> Metadatum:
    """A list with its texts trimmed and each value once; ``1`` and ``true`` are two values."""
    if not isinstance(value, list):
        return value
    stripped = [each.strip() if isinstance(each, str) else each for each in value]
    return list({(type(each), each): each for each in stripped if each != ""}.values())
