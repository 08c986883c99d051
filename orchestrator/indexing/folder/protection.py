"""Who may see the documents of a file, from its front matter."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from adapters import SENSITIVITIES
from adapters.model.document import Metadatum
from adapters.model.protection import VISIBILITIES, Protection
from adapters.model.spelling import allowed_names

_FIELDS: Mapping[str, tuple[str, ...]] = {"sensitivity": SENSITIVITIES, "visibility": VISIBILITIES}
_MISSPELT = 0.88
"""Similarity from which a key is a misspelling: that of ``visiblity`` is .95, of ``visible`` .82."""


def protection_of(fields: Mapping[str, Metadatum]) -> tuple[Protection, dict[str, Metadatum]]:
    """The protection of a file's documents, and the other fields of its front matter.

    ``owner`` and ``team`` belong to the protection if there is a ``visibility``, and are metadata otherwise.

    :raises ValueError: if a value is not allowed: a document must not be seen by more callers than it was meant for.
    """
    values: dict[str, Any] = {
        name: _named(name, fields[name], allowed) for name, allowed in _FIELDS.items() if fields.get(name) is not None
    }
    if "visibility" in values:
        values |= {name: _text(name, fields[name]) for name in ("owner", "team") if fields.get(name) is not None}
    taken = {*_FIELDS, *values}
    return Protection(**values), {name: value for name, value in fields.items() if name not in taken}


def check_protection(given: Mapping[Any, object]) -> None:
    """Check that the front matter says who may see a file if it seems to.

    :raises ValueError: if a value is missing, or a key is nearly one of these.
    """
    for key, value in given.items():
        name = str(key).strip().lower()
        if name in _FIELDS and (value is None or not str(value).strip()):
            raise ValueError(f"{name}: empty, allowed are {', '.join(_FIELDS[name])}")
        if name not in _FIELDS and (meant := get_close_matches(name, _FIELDS, 1, _MISSPELT)):
            raise ValueError(f"{name[:80]}: unknown, the nearest is {meant[0]}, which says who may see the file")


def names_protection(front_matter: str) -> bool:
    """Whether front matter that cannot be read seems to say who may see its file."""
    keys = (line.partition(":")[0].partition("=")[0].strip(" \t\"'").lower() for line in front_matter.splitlines())
    return any(get_close_matches(key, _FIELDS, 1, _MISSPELT) for key in keys)


def _named(field: str, given: Metadatum, allowed: tuple[str, ...]) -> str:
    name = str(given).strip().lower()
    if name in allowed:
        return name
    raise ValueError(f"{field}: {str(given)[:40]!r}, {allowed_names(name, allowed)}")


def _text(field: str, given: Metadatum) -> str:
    if isinstance(given, str) and given.strip():
        return given.strip()
    raise ValueError(f"{field}: {str(given)[:40]!r}, allowed is a text")
