"""Statements that read for several searches at once, while the graph server is busy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from adapters.graph.bolt import Bolt, Row
from adapters.model.errors import BadResponse
from adapters.servers.batcher import Batcher
from adapters.servers.server import unreadable


@dataclass(frozen=True, slots=True)
class _Read:
    statement: str
    request: Row
    common: Row


class BatchedReads:
    """Sends statements that begin with ``UNWIND $requests AS request`` and return one row a request, with its number.

    Only requests with the same other parameters share a statement, so what they may see is the same, too.
    """

    def __init__(self, bolt: Bolt) -> None:
        self._bolt = bolt
        self._batcher: Batcher[_Read, Row] = Batcher("the graph server", self._read)

    async def read(self, statement: str, request: Row, common: Row) -> Row:
        """The row of a request.

        :param request: its own parameters.
        :param common: the other parameters of the statement.
        :raises AdapterError: as :meth:`Bolt.read`; also if the row is missing.
        """
        return await self._batcher.send(
            _Read(statement, request, common), lambda: (statement, msgspec.json.encode(common))
        )

    async def _read(self, reads: Sequence[_Read]) -> list[Row]:
        first = reads[0]
        requests = [{"number": number, **each.request} for number, each in enumerate(reads)]
        rows = await self._bolt.read(first.statement, {"requests": requests, **first.common})
        try:
            by_number = {row["number"]: row for row in rows}
        except (KeyError, TypeError) as error:
            raise unreadable("the graph server's response to searches", error) from error
        if by_number.keys() != set(range(len(rows))):
            raise BadResponse("the graph server's response does not match the searches")
        return [by_number[number] for number in range(len(rows))]
