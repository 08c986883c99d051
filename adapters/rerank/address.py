"""The reranker at an address. The packages that it needs are imported only if it is used."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from adapters.ports import plugin
from adapters.ports.optional_packages import extra
from adapters.ports.reranker import Reranker

NONE = "none://"
FORMS = f"{NONE}, chat+https://host/v1, rerank+https://host/v1/rerank (or +http), {plugin.FORM}"
_KINDS = ("chat", "rerank")


def check(address: str) -> None:
    """Validate the address of a reranker.

    :raises ValueError: if it has none of the forms :data:`FORMS`. The message never shows the address, which may
        contain a secret.
    """
    if address != NONE and not re.fullmatch(plugin.PATTERN, address):
        _url(address)


def reranker(
    address: str, model: str, key: str, rerank_timeout_s: float
) -> tuple[Reranker | None, Callable[[], Awaitable[None]] | None]:
    """The reranker at an address, and the function that closes it; each is ``None`` where there is none.

    :param model: its name; used over HTTP only, like ``key`` and the time limit.
    :param key: sent as a bearer token; empty for none.
    :raises ValueError: as :func:`check`.
    :raises Unavailable: if a package that it needs is not installed, or a function cannot be imported.
    """
    if address == NONE:
        return None, None
    if address.startswith("python://"):
        from adapters.rerank.function import FunctionReranker  # noqa: PLC0415

        return FunctionReranker(plugin.import_function(address, FORMS), address), None
    kind, url = _url(address)
    with extra("rerank"):
        from adapters.rerank import http  # noqa: PLC0415
    client = http.connect(key, rerank_timeout_s)
    implementation = http.ChatReranker if kind == "chat" else http.CrossEncoder
    return implementation(client, url, model, rerank_timeout_s), client.aclose


def _url(address: str) -> tuple[str, str]:
    """The kind and the URL of a reranker behind HTTP."""
    kind, _, url = address.partition("+")
    try:
        parsed = urlsplit(url)
        is_valid = kind in _KINDS and parsed.scheme in {"http", "https"} and parsed.hostname and parsed.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or parsed.username or parsed.password or parsed.query or parsed.fragment:
        raise ValueError(f"not an address of a reranker, it must be one of {FORMS}")
    return kind, url
