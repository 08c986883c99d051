"""Query expansion."""

from __future__ import annotations

from typing import Protocol


class Expander(Protocol):
    """Finds synonyms of words and phrases of a query."""

    async def expand(self, text: str) -> tuple[str, ...]:
        """Words and phrases that may stand for something in ``text``, each once.

        :raises AdapterError: and nothing else.
        """
        ...
