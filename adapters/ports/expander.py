"""Query expansion."""

from __future__ import annotations

from typing import Protocol


class Expander(Protocol):
    """Finds synonyms of words and phrases of a query."""

    async def expand(self, text: str) -> tuple[str, ...]:
        """Synonyms of words and phrases of ``text``, each once.

        :raises AdapterError: and nothing else.
        """
        ...
