"""Sends requests to a running service."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit

import msgspec

from adapters.model.errors import BadResponse, Unavailable
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.problem import Problem
from orchestrator.schema.search import SearchResponse

T = TypeVar("T")

_MORE_S = 5.0
"""Seconds that the service has beside the time limit of the request."""
_READ_TIMEOUT_S = 30.0
_MAX_BYTES = 67_108_864


@dataclass(frozen=True, slots=True)
class RemoteService:
    """A running service.

    :param url: of the service, without a path.
    :param key: the API key to send.
    :raises BadRequest: if the URL is none of a service.
    """

    url: str
    key: str | None

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).netloc:
            raise BadRequest(
                f"--url is {self.url!r}, allowed is the address of a service such as http://127.0.0.1:8080"
            )

    def search(self, fields: Mapping[str, Any], timeout_ms: int) -> tuple[bytes, SearchResponse]:
        """The response of ``POST /v1/search``, encoded and decoded. Blocks.

        :raises BadRequest: if the service refuses the request.
        :raises AdapterError: if it cannot be reached, or fails.
        """
        content = self._send("/v1/search", msgspec.json.encode(fields), timeout_ms / 1_000 + _MORE_S)
        return content, self._decoded(content, SearchResponse)

    def get(self, path: str, kind: type[T], **parameters: str) -> T:
        """The response to ``GET`` of a path. Blocks. Errors as in :meth:`search`."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        return self._decoded(self._send(f"{path}{query}", None, _READ_TIMEOUT_S), kind)

    def _send(self, path: str, body: bytes | None, timeout_s: float) -> bytes:
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        if body is not None:
            headers["content-type"] = "application/json"
        request = urllib.request.Request(f"{self.url.rstrip('/')}{path}", body, headers)  # noqa: S310  # http or https
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as response:  # noqa: S310  # as above
                content: bytes = response.read(_MAX_BYTES)
        except HTTPError as error:
            detail = _detail(error.read(_MAX_BYTES)) or error.reason
            if error.code < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise BadRequest(f"{self.url}: {detail}") from error
            raise Unavailable(f"{self.url}: {detail}") from error
        except (URLError, TimeoutError) as error:
            raise Unavailable(f"{self.url} cannot be reached: {getattr(error, 'reason', error)}") from error
        return content

    def _decoded(self, content: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError as error:
            raise BadResponse(f"{self.url} did not send a response of Trivium: {error}") from error


def _detail(content: bytes) -> str:
    try:
        problem = msgspec.json.decode(content, type=Problem)
    except msgspec.DecodeError:
        return ""
    return "; ".join((problem.detail, *problem.errors))
