"""A server is asked how its index was built before it is asked for anything else; also one that was away at first."""

from __future__ import annotations

from adapters import Query, VersionMismatch
from adapters.port import Server
from fusion import Ranking


class Verified:
    """The source on a server.

    :param strict: whether an index that was built otherwise than the settings say is not searched.
    """

    def __init__(self, server: Server, strict: bool) -> None:
        self.mismatch: str | None = None
        self._server = server
        self._strict = strict
        self._looked = False

    async def search(self, query: Query) -> Ranking:
        """See :class:`adapters.port.Retriever`.

        :raises VersionMismatch: if the index is another one, and that is not to be searched.
        """
        if not self._looked:
            await self.look()
        if self.mismatch and self._strict:
            raise VersionMismatch(self.mismatch)
        return await self._server.search(query)

    async def look(self) -> None:
        """Ask the server.

        :raises AdapterError: if it does not say.
        """
        try:
            await self._server.built()
            self.mismatch = None
        except VersionMismatch as error:
            self.mismatch = str(error)
        self._looked = True
