"""What the demonstration finds before it is a document."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Described:
    """A module, class or function: ``names`` are what it is called besides ``name``; ``links`` are (type, name)."""

    name: str
    kind: str
    text: str
    names: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
