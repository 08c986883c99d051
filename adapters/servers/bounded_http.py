"""HTTP responses without compression and with a maximum size, for clients that use httpx."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import httpx

_IDLE_S = 4.0
"""Seconds after which an idle connection is closed. Servers do that after 5 s, and a request at that moment fails."""


class BoundedTransport(httpx.AsyncHTTPTransport):
    """Connections whose responses have a maximum size.

    :param max_bytes: of the body of a response.
    """

    def __init__(self, max_connections: int, max_bytes: int) -> None:
        super().__init__(limits=httpx.Limits(max_connections=max_connections, keepalive_expiry=_IDLE_S))
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """See :class:`httpx.AsyncBaseTransport`.

        :raises httpx.DecodingError: for a compressed response: a small one may decompress to a huge one.
        """
        request.headers["accept-encoding"] = "identity"
        response = await super().handle_async_request(request)
        stream = cast(httpx.AsyncByteStream, response.stream)
        if response.headers.get("content-encoding", "identity") != "identity":
            await stream.aclose()
            raise httpx.DecodingError("a compressed response, which was not requested")
        response.stream = _BoundedStream(stream, self._max_bytes)
        return response


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._max_bytes:
                raise httpx.ReadError(f"a response of more than {self._max_bytes} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
