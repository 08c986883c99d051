"""Answers of tools, and the texts of documents in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.model.protection import Visibility


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool returns: a text, or structured content with a line of text."""

    text: str
    structured: Mapping[str, Any] | None = None


def unless_shared(visibility: Visibility) -> list[str]:
    """The visibility of a document that only some callers of its tenant see."""
    return [] if visibility == "tenant" else [f"visible to its {'team' if visibility == 'team' else 'owner'} only"]


def exact(name: str) -> str:
    """An id or a name as it is; as a JSON string if it has characters that are not printable, such as ends of lines."""
    return name if name.isprintable() else json.dumps(name)
