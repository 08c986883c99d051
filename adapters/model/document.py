"""The unit of indexing: a document as its author writes it, and the record that is stored of it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from adapters.model import numbers
from adapters.model.protection import Protection, Sensitivity, Viewer, Visibility
from adapters.text.forms import normal_form
from fusion.doc_ids import DEFAULT_COLLECTION, doc_id
from fusion.values import DocId, DocumentFields

Scalar: TypeAlias = str | int | float | bool
"""A value that a filter can test. Numbers are compared exactly (``1`` equals ``1.0``), dates as seconds since 1970."""

EncodedPart: TypeAlias = Literal["title", "headings", "summary", "boosters", "neighbors"]
PARTS: tuple[EncodedPart, ...] = ("title", "headings", "summary", "boosters", "neighbors")
"""What can be encoded beside the text of a document: ``title``, ``heading_path``, ``local_summary``,
``semantic_boosters``, and ``text_before`` with ``text_after``."""

METADATA = "metadata."
"""Before a key of the metadata, in the name of a field."""
MAX_ID_BYTES = 512
MAX_VALUE_CHARS = 8_192
"""Maximum length of a text in metadata, and of the URL. No other field that a filter tests has a longer one."""
Name = Annotated[str, Meta(min_length=1, max_length=MAX_ID_BYTES)]
Offset = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Weight = Annotated[float, Meta(gt=0, le=1_000)]
Metadatum: TypeAlias = str | int | float | bool | list[str | int | float | bool] | None

# ``gc=False``: large writes have thousands of documents, which the garbage collector would visit again and again. They
# are made from JSON, so they cannot form cycles.


class Link(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """An edge to another document of the same scope. A walk follows it in proportion to ``weight``.

    :param target: the id of a document.
    :param target_collection: of the target; that of the document itself by default.
    """

    target: Name
    type: Name
    weight: Weight = 1.0
    target_collection: Name | None = None


class Document(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """One JSON object of the document contract. Unknown keys are rejected.

    :param chunk_index: from 0, within the document ``parent_id``.
    :param parent_start: where the text begins in the document ``parent_id``, in characters from 0.
    :param parent_end: where it ends there.
    :param text_before: the end of the text before a chunk, which is encoded with it; ``text_after``: the beginning of
        the text after it.
    :param heading_path: the headings above a chunk, from the outermost.
    :param chunker_version: what made a chunk, or the chunks of a document.
    :param chunk_count: number of chunks of a document: then only its beginning is encoded, and its chunks as a whole.
    :param created_at: in JSON a text as in RFC 3339.
    :param importance: from 0 to 10.
    :param visibility: ``private``: only its ``owner``, a user, sees it; ``team``: its ``team`` does, too.
    :param keywords: of the whole document that a chunk is from, as ``summary`` is; ``local_keywords`` and
        ``local_summary`` are those of the chunk. These, ``query_expansion_keywords`` and ``tags`` are searched by
        keyword.
    :param semantic_boosters: texts that say what the document is about, for its vector.
    :param vector: of the document, in the space of the queries' vectors; used instead of encoding the text.
    :param entities: names of entities that the document mentions; ``None`` to extract them from the text.
    """

    id: Name
    text: str
    collection: Name = DEFAULT_COLLECTION
    parent_id: Name | None = None
    chunk_index: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    parent_start: Offset | None = None
    parent_end: Offset | None = None
    text_before: str = ""
    text_after: str = ""
    heading_path: tuple[str, ...] = ()
    chunker_version: str | None = None
    chunk_count: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    title: str = ""
    url: str | None = None
    created_at: datetime | None = None
    importance: Annotated[float, Meta(ge=0, le=10)] | None = None
    sensitivity: Sensitivity = "normal"
    visibility: Visibility = "tenant"
    owner: Name | None = None
    team: Name | None = None
    tags: tuple[str, ...] = ()
    language: str | None = None
    section: str | None = None
    topics: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    local_keywords: tuple[str, ...] = ()
    query_expansion_keywords: tuple[str, ...] = ()
    semantic_boosters: tuple[str, ...] = ()
    summary: str = ""
    local_summary: str = ""
    vector: tuple[float, ...] | None = None
    window_id: Name | None = None
    window_index: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    neighbor_chunk_ids: tuple[Name, ...] = ()
    metadata: dict[str, Metadatum] = {}
    entities: tuple[str, ...] | None = None
    links: tuple[Link, ...] = ()

    @property
    def protection(self) -> Protection:
        """What decides who may see it."""
        return Protection(self.sensitivity, self.visibility, self.owner, self.team)


@dataclass(frozen=True, slots=True)
class Scope:
    """A tenant and its environment: no search or walk leaves it. Both names have 1 to 512 bytes."""

    tenant: str = "default"
    environment: str = "default"


class Record(Struct, frozen=True, gc=False, omit_defaults=True):
    """A document as it is stored: with its scope, and with the names of the entities that it mentions.

    :param document: without its vector.
    :param vector: of the document, as :func:`adapters.model.vectors.packed` returns it.
    """

    tenant: str
    environment: str
    document: Document
    entities: tuple[str, ...] = ()
    vector: bytes | None = None

    @property
    def whole(self) -> Document:
        """The document as it was written, with its vector."""
        if self.vector is None:
            return self.document
        from adapters.model.vectors import unpacked  # noqa: PLC0415, numpy, which clients do not need

        return replace(self.document, vector=unpacked(self.vector))

    @property
    def doc_id(self) -> DocId:
        """See :func:`fusion.doc_ids.doc_id`."""
        return doc_id(self.document.id, self.document.collection)

    @property
    def key(self) -> tuple[str, str, DocId]:
        """(tenant, environment, doc_id), which is unique."""
        return self.tenant, self.environment, self.doc_id


def hidden_keys(records: Iterable[Record], viewer: Viewer) -> frozenset[tuple[str, str, str]]:
    """The keys of the records that a viewer of their scope may not see."""
    return frozenset(record.key for record in records if not viewer.sees(record.document.protection))


def passage(document: Document) -> str:
    """The text that is encoded and searched: the title, then the text."""
    return f"{document.title}\n{document.text}" if document.title else document.text


_TEXT_FIELDS = ("parent_id", "url", "language", "section", "window_id", "owner", "team")
_LIST_FIELDS = ("tags", "topics")
_WORDS = frozenset({"language", "section", "tags", "topics"})
"""Fields whose texts are words, and no ids: they are compared in their normal form, as those of the metadata are."""


def has_words(field: str) -> bool:
    """Whether the texts of a field are compared in their normal form: see :func:`adapters.text.forms.normal_form`."""
    return field in _WORDS or field.startswith(METADATA)


def fields(record: Record, keys: Container[str] | None = None) -> dict[str, tuple[Scalar, ...]]:
    """Every value that a filter can test, by field. A field without a value is left out.

    :param keys: of the metadata that is needed; all by default.
    """
    document = record.document
    values_by_field: dict[str, tuple[Scalar, ...]] = {
        "tenant": (record.tenant,),
        "environment": (record.environment,),
        "id": (document.id,),
        "collection": (document.collection,),
        "sensitivity": (document.sensitivity,),
        "visibility": (document.visibility,),
    }
    values_by_field |= {
        name: (normal_form(value) if name in _WORDS else value,)
        for name in _TEXT_FIELDS
        if (value := getattr(document, name)) is not None
    }
    values_by_field |= {
        name: tuple(map(normal_form, values)) for name in _LIST_FIELDS if (values := getattr(document, name))
    }
    if document.chunk_index is not None:
        values_by_field["chunk_index"] = (float(document.chunk_index),)
    if document.created_at is not None:
        values_by_field["created_at"] = (document.created_at.timestamp(),)
    if document.importance is not None:
        values_by_field["importance"] = (float(document.importance),)
    for name, value in document.metadata.items():
        key = normal_form(name)
        if keys is not None and key not in keys:
            continue
        if present := tuple(_comparable(each) for each in values_of(value) if each is not None):
            field = f"{METADATA}{key}"
            values_by_field[field] = (*values_by_field.get(field, ()), *present)
    return values_by_field


def _comparable(value: Scalar) -> Scalar:
    """A value of metadata as filters compare it: texts are trimmed, in their normal form."""
    return normal_form(value.strip()) if isinstance(value, str) else plain(value)


def values_of(value: Metadatum) -> Sequence[Scalar | None]:
    """The values of a metadata key: those of its list, or the only one."""
    return value if isinstance(value, list) else [value]


def rank_fields(document: Document) -> DocumentFields | None:
    """The fields of a document that ranking needs; ``None`` if it has none of them."""
    created = document.created_at
    parent = None if document.parent_id is None else doc_id(document.parent_id, document.collection)
    fields = DocumentFields(parent, document.chunk_index, created.timestamp() if created else None, document.importance)
    return None if fields == _NO_FIELDS else fields


_NO_FIELDS = DocumentFields()


def plain(value: Scalar) -> Scalar:
    """The form in which a value is compared: a number as :func:`adapters.model.numbers.plain` returns it."""
    return value if isinstance(value, str | bool) else numbers.plain(value)


def trimmed(values: Iterable[str]) -> tuple[str, ...]:
    """The distinct, not empty values without surrounding white space, in the order of their first occurrence."""
    return tuple(dict.fromkeys(stripped for value in values if (stripped := value.strip())))
