"""What is a name: see :class:`adapters.ports.names.NameRules`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from adapters.graph.extract import Extractor
from adapters.graph.gazetteer import Gazetteer
from adapters.graph.names import normalize


@dataclass(frozen=True, slots=True)
class NameRules:
    """The rules, with the extractor that the settings name."""

    extract: Extractor

    def normalize(self, name: str) -> str:
        """See :func:`adapters.graph.names.normalize`."""
        return normalize(name)

    def finder(self, names: Iterable[str]) -> Gazetteer:
        """What finds these names in texts."""
        return Gazetteer(names)
