"""Which reranker an address means. What it needs is imported when there is one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from adapters import plugin
from adapters.errors import Unavailable
from adapters.port import Reranker

NONE = "none://"
FORMS = f"{NONE}, chat+https://host/v1, rerank+https://host/v1/rerank (or +http), {plugin.FORM}"
_KINDS = ("chat", "rerank")


def check(address: str) -> None:
    """Whether it is an address of a reranker.

    :raises ValueError: if it is none; the message says what is.
    """
    if address != NONE and not re.fullmatch(plugin.PATTERN, address):
        _url(address)


def reranker(
    address: str, model: str, key: str, timeout_s: float
) -> tuple[Reranker | None, Callable[[], Awaitable[None]] | None]:
    """The reranker, if there is one, and what closes it, if it is to be closed.

    :raises ValueError: as :func:`check`.
    :raises Unavailable: if what it needs is not installed, or a function cannot be imported.
    """
    if address == NONE:
        return None, None
    if address.startswith("python://"):
        from adapters.rerank.function import FunctionReranker  # noqa: PLC0415

        return FunctionReranker(plugin.function(address, FORMS), address), None
    kind, url = _url(address)
    try:
        from adapters.rerank import http  # noqa: PLC0415
    except ImportError as error:
        raise Unavailable(f"{error.name} is not installed: pip install 'trivium[rerank]'") from error
    client = http.connect(key, timeout_s)
    made = http.ChatReranker if kind == "chat" else http.CrossEncoder
    return made(client, url, model, timeout_s), client.aclose


def _url(address: str) -> tuple[str, str]:
    kind, _, url = address.partition("+")
    try:
        parts = urlsplit(url)
        known = kind in _KINDS and parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known or parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(f"no address of a reranker, allowed are {FORMS}")
    return kind, url
