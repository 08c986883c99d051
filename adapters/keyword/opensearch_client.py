"""The connection to OpenSearch: without redirects and compression, and with a maximum size of responses."""

from __future__ import annotations

import ssl
from typing import Any

import aiohttp
import msgspec
from opensearchpy import AIOHttpConnection, AsyncOpenSearch
from opensearchpy import exceptions as driver
from opensearchpy.serializer import JSONSerializer

from adapters.keyword.opensearch_replies import status_error
from adapters.model.errors import AdapterError, TimedOut, Unavailable
from adapters.servers.server import Address, Limits, unreachable, unreadable
from adapters.servers.trace_context import trace_headers

_MAX_RESPONSE_BYTES = 268_435_456
_CHUNK_BYTES = 65_536


class _Response(aiohttp.ClientResponse):
    """A response with a maximum size."""

    async def text(self, encoding: str | None = None, errors: str = "strict") -> str:
        """The body as text; the client always decodes it as UTF-8.

        :raises aiohttp.ClientPayloadError: if it has too many bytes.
        """
        content = bytearray()
        async for chunk in self.content.iter_chunked(_CHUNK_BYTES):
            content += chunk
            if len(content) > _MAX_RESPONSE_BYTES:
                raise aiohttp.ClientPayloadError(f"a response of more than {_MAX_RESPONSE_BYTES} bytes")
        return content.decode(encoding or "utf-8", errors)


class _Connection(AIOHttpConnection):
    """The client's connection with our own session.

    :param maxsize: maximum number of connections to the server.
    """

    def __init__(self, *, maxsize: int, ssl_context: ssl.SSLContext | None = None, **options: Any) -> None:
        super().__init__(maxsize=maxsize, ssl_context=ssl_context, **options)
        self.max_connections, self.tls = maxsize, ssl_context

    async def perform_request(self, *arguments: Any, **options: Any) -> Any:
        """See :class:`opensearchpy.AIOHttpConnection`, which would create another session for its first request."""
        if self.session is None:
            self.session = self._new_session()
        return await super().perform_request(*arguments, **options)

    def _new_session(self) -> aiohttp.ClientSession:
        events = aiohttp.TraceConfig()
        events.on_request_redirect.append(_refuse_redirect)
        events.on_request_start.append(_add_trace_context)
        return aiohttp.ClientSession(
            headers=self.headers,
            skip_auto_headers=("accept", "accept-encoding"),
            auto_decompress=False,  # not requested, and a small response may decompress to a huge one
            cookie_jar=aiohttp.DummyCookieJar(),
            response_class=_Response,
            connector=aiohttp.TCPConnector(limit=self.max_connections, ssl=self.tls or True),
            trace_configs=[events],
        )


async def _add_trace_context(session: object, context: object, request: aiohttp.TraceRequestStartParams) -> None:
    del session, context
    request.headers.update(trace_headers())


async def _refuse_redirect(*_: object) -> None:
    raise aiohttp.ClientError("a redirect, which is not followed")


class _Json(JSONSerializer):
    """A serializer that uses msgspec, which takes a third of the time of the client's own."""

    def dumps(self, data: Any) -> Any:
        return data if isinstance(data, str) else msgspec.json.encode(data).decode()

    def loads(self, s: str) -> Any:
        try:
            return msgspec.json.decode(s)
        except (msgspec.DecodeError, RecursionError) as error:
            raise driver.SerializationError("not JSON", error) from error


def connect(address: Address, limits: Limits, ca_file: str | None = None) -> AsyncOpenSearch:
    """A client of the server at ``address``. Call it on the event loop that will use the client.

    :param ca_file: path of certificates that are trusted besides those of the system.
    """
    secure = address.scheme.endswith("s")
    return AsyncOpenSearch(
        hosts=[{"host": address.host, "port": address.port}],
        http_auth=(address.user, address.password) if address.user else None,
        use_ssl=secure,
        ssl_context=_tls(ca_file) if secure else None,
        timeout=max(limits.read_timeout_s, limits.write_timeout_s) + 1,  # the exact limit is applied around every call
        max_retries=0,
        serializer=_Json(),
        connection_class=_Connection,
        maxsize=limits.max_connections,
    )


def _tls(ca_file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file:
        context.load_verify_locations(ca_file)
    return context


def translate(error: Exception) -> AdapterError | None:
    """The adapter error for an error of OpenSearch's client."""
    match error:
        case driver.ConnectionTimeout():
            return TimedOut("opensearch timed out")
        case driver.ConnectionError():
            return unreachable("opensearch", error)
        case driver.TransportError(status_code=int(status)):
            return status_error(status, error.error)
        case driver.TransportError():
            return Unavailable("a request to opensearch failed", type(error).__name__)
        case driver.SerializationError() | ValueError() | KeyError() | TypeError():
            return unreadable("opensearch's response", error)
        case _:
            return None
