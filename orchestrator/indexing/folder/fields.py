"""The fields of a document from what a file says of itself: the front matter of Markdown, the head of HTML, a PDF."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from math import isfinite
from typing import Any

from adapters.model import dates
from adapters.model.document import MAX_VALUE_CHARS, Metadatum, trimmed

_TITLES = ("title",)
_DATES = ("date", "created", "created_at", "published", "article-published_time", "dc_date", "pubdate", "last-modified")
_TAGS = ("tags", "keywords", "categories")
_LANGUAGES = ("language", "lang")
_ALIASES = ("aliases", "alias")
_RELATED = ("related", "see_also", "see-also")
_USED = frozenset((*_TITLES, *_DATES, *_TAGS, *_LANGUAGES, *_ALIASES, *_RELATED))
_RESERVED = frozenset(("path", "folder", "fingerprint", "root"))
"""Keys of the metadata that are set for every file."""
_LIST_SEPARATOR = re.compile(r"\s*[,;]\s*")
_MAX_KEYS = 32
_MAX_NAME_CHARS = 256
_DATE = re.compile(
    r"(\d{4})[-/](\d{2})[-/](\d{2})(?:[ T](\d{2}:\d{2})(:\d{2}(?:\.\d{1,6})?)?\d*\s*(Z|[+-]\d{2}:?\d{2})?)?"
)
_PDF_DATE = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?")


@dataclass(frozen=True, slots=True)
class Fields:
    """What a file says of itself.

    :param related: files, as paths or by name.
    :param others: everything else that metadata can have.
    """

    title: str = ""
    created_at: datetime | None = None
    tags: tuple[str, ...] = ()
    language: str | None = None
    aliases: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    others: Mapping[str, Metadatum] = field(default_factory=dict)


def fields_of(given: Mapping[str, Any]) -> Fields:
    """The fields by their usual names, in whatever case; values of a wrong kind are left out."""
    values = {str(key).strip().lower(): value for key, value in given.items() if value is not None}
    return Fields(
        title=next((each for key in _TITLES for each in _texts(values.get(key), split=False)), ""),
        created_at=next((found for key in _DATES if (found := _moment(_first(values.get(key))))), None),
        tags=trimmed(each.lstrip("#") for key in _TAGS for each in _texts(values.get(key))),
        language=next((each for key in _LANGUAGES for each in _texts(values.get(key))), None),
        aliases=trimmed(each for key in _ALIASES for each in _texts(values.get(key))),
        related=trimmed(each for key in _RELATED for each in _texts(values.get(key))),
        others=dict(_others(values)),
    )


def _texts(value: Any, split: bool = True) -> Iterable[str]:
    """The texts of a value: of a list, of a text with commas, or the only one. Longer ones than a name are left out."""
    items = value if isinstance(value, list | tuple) else [value]
    for item in map(_first, items):  # YAML reads [[name]] as a list in a list
        if isinstance(item, str | int | float) and not isinstance(item, bool):
            text = " ".join(str(item).split())
            is_list = split and not isinstance(value, list | tuple)
            yield from (part for part in (_LIST_SEPARATOR.split(text) if is_list else [text]) if _is_name(part))


def _first(value: Any) -> Any:
    """The value itself, or the first of a list."""
    while isinstance(value, list) and value:
        value = value[0]
    return value


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _MAX_NAME_CHARS and text.isprintable()


def _moment(value: Any) -> datetime | None:
    """A date of YAML, of RFC 3339, or of a PDF."""
    if isinstance(value, date):  # also a datetime
        value = value.isoformat()
    if not isinstance(value, str):
        return None
    if pdf := _PDF_DATE.match(value):
        value = "-".join(part or "01" for part in pdf.groups())
    if (parts := _DATE.match(value.strip())) is None:
        return None
    year, month, day, minutes, seconds, zone = parts.groups()
    time = f"T{minutes}{seconds or ':00'}{_zone(zone)}" if minutes else ""
    try:
        return dates.moment(f"{year}-{month}-{day}{time}")
    except ValueError:
        return None


def _zone(zone: str | None) -> str:
    """The zone as in RFC 3339; UTC by default."""
    return "Z" if zone in {None, "Z"} else f"{zone[:3]}:{zone[-2:]}"


def _others(values: Mapping[str, Any]) -> Iterable[tuple[str, Metadatum]]:
    """The other keys with values that metadata can have; dates as texts."""
    kept = 0
    for key, value in values.items():
        if key in _USED or key in _RESERVED or not _is_name(key) or kept == _MAX_KEYS:
            continue
        items = value if isinstance(value, list) else [value]
        plain = [item.isoformat() if isinstance(item, date) else item for item in items]
        if plain and all(_is_metadatum(item) for item in plain):
            kept += 1
            yield key, plain if isinstance(value, list) else plain[0]


def _is_metadatum(value: Any) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= MAX_VALUE_CHARS
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**63)
