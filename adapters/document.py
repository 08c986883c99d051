"""The unit of indexing: a document as its owner writes it, and as the stores hold it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from fusion import Facts

Scalar: TypeAlias = str | float | bool
"""A value that a filter can name. Numbers are compared as IEEE doubles, dates as seconds since the epoch."""

Sensitivity: TypeAlias = Literal["public", "normal", "sensitive", "restricted"]
SENSITIVITIES: tuple[Sensitivity, ...] = ("public", "normal", "sensitive", "restricted")
"""Least to most guarded: a caller sees what is at or under its clearance."""

ID_BYTES = 512
Name = Annotated[str, Meta(min_length=1, max_length=ID_BYTES)]
Weight = Annotated[float, Meta(gt=0, le=1_000)]
Metadatum: TypeAlias = str | int | float | bool | list[str | int | float | bool] | None


class Link(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An edge to another document of the same scope. ``weight`` scales what flows along it."""

    target: Name
    type: Name
    weight: Weight = 1.0


class Document(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One JSON object of the document contract. Unknown keys are refused.

    ``importance`` is 0 to 10; ``chunk_index`` counts from 0 within ``parent_id``; ``created_at`` is RFC 3339.
    ``entities`` left out means: extract them from the text.
    """

    id: Name
    text: str
    collection: Name = "documents"
    parent_id: Name | None = None
    chunk_index: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    title: str = ""
    url: str | None = None
    created_at: datetime | None = None
    importance: Annotated[float, Meta(ge=0, le=10)] | None = None
    sensitivity: Sensitivity = "normal"
    tags: tuple[str, ...] = ()
    language: str | None = None
    metadata: dict[str, Metadatum] = {}
    entities: tuple[str, ...] | None = None
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose documents: nothing ever crosses it. Both names are 1 to 512 bytes."""

    tenant: str = "default"
    environment: str = "default"


class Record(Struct, frozen=True, omit_defaults=True):
    """A document as the stores hold it: in its scope, with the entities that it was found to mention."""

    tenant: str
    environment: str
    document: Document
    entities: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """What is unique: (tenant, environment, id)."""
        return self.tenant, self.environment, self.document.id


def passage(document: Document) -> str:
    """What is embedded and matched: the title, then the text."""
    return f"{document.title}\n{document.text}" if document.title else document.text


def fields(record: Record) -> dict[str, tuple[Scalar, ...]]:
    """Every value that a filter can see, by field. A field without a value is left out."""
    document = record.document
    found: dict[str, tuple[Scalar, ...]] = {
        "tenant": (record.tenant,),
        "environment": (record.environment,),
        "id": (document.id,),
        "collection": (document.collection,),
        "sensitivity": (document.sensitivity,),
    }
    if document.parent_id is not None:
        found["parent_id"] = (document.parent_id,)
    if document.chunk_index is not None:
        found["chunk_index"] = (float(document.chunk_index),)
    if document.url is not None:
        found["url"] = (document.url,)
    if document.created_at is not None:
        found["created_at"] = (document.created_at.timestamp(),)
    if document.importance is not None:
        found["importance"] = (float(document.importance),)
    if document.language is not None:
        found["language"] = (document.language,)
    if document.tags:
        found["tags"] = document.tags
    for name, value in document.metadata.items():
        values = value if isinstance(value, list) else [value]
        if numbered := tuple(plain(each) for each in values if each is not None):
            found[f"metadata.{name}"] = numbered
    return found


def facts(document: Document) -> Facts | None:
    """What ranking needs to know of a document; ``None`` if there is nothing of it."""
    created = document.created_at
    found = Facts(
        document.parent_id, document.chunk_index, created.timestamp() if created else None, document.importance
    )
    return None if found == _NO_FACTS else found


_NO_FACTS = Facts()


def plain(value: Scalar) -> Scalar:
    """A value as it is compared: every number a double."""
    return value if isinstance(value, str | bool) else float(value)


def trimmed(values: Iterable[str]) -> tuple[str, ...]:
    """Without surrounding space, without the empty, each once, in the order of first sight."""
    return tuple(dict.fromkeys(stripped for value in values if (stripped := value.strip())))
