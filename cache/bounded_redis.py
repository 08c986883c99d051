"""The parser of replies of Redis, with a maximum size.

redis-py has no setting for a limit, and an endless reply would fill the memory while the process waits for messages. So
its parser is extended. The parser is private to redis-py: ``pyproject.toml`` excludes releases that this file was not
tested with, and ``tests/cache/test_lying_redis.py`` tests the limit.
"""

from __future__ import annotations

from redis._parsers import _AsyncRESP2Parser
from redis.exceptions import InvalidResponse

MAX_REPLY_BYTES = 4_194_304
"""Maximum size of a reply: no command of this package has a larger one."""


class BoundedParser(_AsyncRESP2Parser):
    """Refuses replies that are too long. ``_pos`` is the number of bytes of the reply that are read already."""

    async def _read(self, length: int) -> bytes:
        self._check(length)
        return await super()._read(length)

    async def _readline(self) -> bytes:
        self._check(0)
        return await super()._readline()

    def _check(self, length: int) -> None:
        if length < 0 or self._pos + length > MAX_REPLY_BYTES:
            raise InvalidResponse(f"a reply of more than {MAX_REPLY_BYTES} bytes, or of a negative size")
