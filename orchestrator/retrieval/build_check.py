"""Checks the build of the index on a server before its first search."""

from __future__ import annotations

from typing import Protocol

from adapters import VersionMismatch
from adapters.ports import Retriever, SourceQuery
from adapters.ports.replica import IndexAdmin
from fusion.columns import Ranking


class CheckableSource(Retriever, IndexAdmin, Protocol):
    """A source with an index of its own."""


class BuildCheckedRetriever:
    """A source on a server, whose index is checked before the first search.

    :param strict: whether an index of another build is not searched.
    """

    def __init__(self, source: CheckableSource, strict: bool) -> None:
        self.mismatch: str | None = None
        self._source = source
        self._strict = strict
        self._is_checked = False

    async def search(self, query: SourceQuery) -> Ranking:
        """See :class:`adapters.ports.Retriever`.

        :raises VersionMismatch: if the index is of another build that must not be searched.
        """
        if not self._is_checked:
            await self.check()
        if self.mismatch and self._strict:
            raise VersionMismatch(self.mismatch)
        return await self._source.search(query)

    async def check(self) -> None:
        """Compare the build of the index with the settings.

        :raises AdapterError: if the server is unavailable.
        """
        try:
            await self._source.check()
            self.mismatch = None
        except VersionMismatch as error:
            self.mismatch = str(error)
        self._is_checked = True
