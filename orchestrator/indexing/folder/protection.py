"""Who may see the documents of a file, from its front matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters import SENSITIVITIES
from adapters.model.document import Metadatum
from adapters.model.protection import VISIBILITIES, Protection
from adapters.model.spelling import allowed_names


def protection_of(fields: Mapping[str, Metadatum]) -> tuple[Protection, dict[str, Metadatum]]:
    """The protection of a file's documents, and the other fields of its front matter.

    ``owner`` and ``team`` belong to the protection if there is a ``visibility``, and are metadata otherwise.

    :raises ValueError: if a value is not allowed: a document must not be seen by more callers than it was meant for.
    """
    values: dict[str, Any] = {
        name: _named(name, fields[name], allowed)
        for name, allowed in (("sensitivity", SENSITIVITIES), ("visibility", VISIBILITIES))
        if fields.get(name) is not None
    }
    if "visibility" in values:
        values |= {name: _text(name, fields[name]) for name in ("owner", "team") if fields.get(name) is not None}
    taken = {"sensitivity", "visibility", *values}
    return Protection(**values), {name: value for name, value in fields.items() if name not in taken}


def _named(field: str, given: Metadatum, allowed: tuple[str, ...]) -> str:
    name = str(given).strip().lower()
    if name in allowed:
        return name
    raise ValueError(f"{field}: {str(given)[:40]!r}, {allowed_names(name, allowed)}")


def _text(field: str, given: Metadatum) -> str:
    if isinstance(given, str) and given.strip():
        return given.strip()
    raise ValueError(f"{field}: {str(given)[:40]!r}, allowed is a text")
