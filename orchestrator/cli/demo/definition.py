"""A documented Python object, from which a document is created."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Definition:
    """A module, class or function. ``names``: all its names; ``links``: pairs of type and name."""

    name: str
    kind: str
    text: str
    names: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
