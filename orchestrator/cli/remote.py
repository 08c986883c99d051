"""Sends a request to a running service."""

from __future__ import annotations

import urllib.request
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

import msgspec

from adapters.model.errors import BadResponse, Unavailable
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.problem import Problem
from orchestrator.schema.search import SearchResponse

_MORE_S = 5.0
"""Seconds that the service has beside the time limit of the request."""
_MAX_BYTES = 67_108_864


def search_at(url: str, fields: dict[str, Any], key: str | None, timeout_ms: int) -> tuple[bytes, SearchResponse]:
    """The response of ``POST /v1/search`` of a service, encoded and decoded.

    :param url: of the service, without a path.
    :raises BadRequest: if the service refuses the request.
    :raises AdapterError: if it cannot be reached, or fails.
    """
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise BadRequest(f"--url is {url!r}, allowed is the address of a service such as http://127.0.0.1:8080")
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
    request = urllib.request.Request(  # noqa: S310  # http or https, as checked above
        f"{url.rstrip('/')}/v1/search", msgspec.json.encode(fields), headers, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout_ms / 1_000 + _MORE_S) as response:  # noqa: S310  # as above
            content: bytes = response.read(_MAX_BYTES)
    except HTTPError as error:
        detail = _detail(error.read(_MAX_BYTES)) or error.reason
        if error.code < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise BadRequest(f"{url}: {detail}") from error
        raise Unavailable(f"{url}: {detail}") from error
    except (URLError, TimeoutError) as error:
        raise Unavailable(f"{url} cannot be reached: {getattr(error, 'reason', error)}") from error
    try:
        return content, msgspec.json.decode(content, type=SearchResponse)
    except msgspec.DecodeError as error:
        raise BadResponse(f"{url} did not send a response of Trivium: {error}") from error


def _detail(content: bytes) -> str:
    try:
        problem = msgspec.json.decode(content, type=Problem)
    except msgspec.DecodeError:
        return ""
    return "; ".join((problem.detail, *problem.errors))
