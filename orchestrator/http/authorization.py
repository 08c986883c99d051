"""Authentication of HTTP requests, and the role that each path needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from orchestrator.auth.loopback import is_loopback
from orchestrator.auth.principal import UNAUTHENTICATED, Forbidden, Principal, Role
from orchestrator.service.service import Service

_FORWARDED = (b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip")
"""Headers that proxies add (RFC 7239; RFC 9110, section 7.6.3)."""


def identify(service: Service, headers: Mapping[bytes, bytes], role: Role) -> Principal:
    """The principal of a request that needs a role, which it may not have.

    :raises UnknownKey: if a key is needed and the request has no valid one.
    :raises Forbidden: if there are no keys and the request comes from a web page of another site, by its own name or by
        a name that resolves to this machine (DNS rebinding), or through a proxy, which may have come from anywhere.
        Without keys the service trusts the user of this machine only.
    """
    if role == "none":
        return UNAUTHENTICATED
    if service.keyring:
        return service.keyring.authenticate(headers.get(b"authorization", b"").decode("latin-1"))
    host, origin = headers.get(b"host", b"").decode("latin-1"), headers.get(b"origin", b"").decode("latin-1")
    if forwarded := [name.decode() for name in _FORWARDED if name in headers]:
        raise Forbidden(
            f"without keys, requests through a proxy are refused, and this one has {forwarded[0]!r}: add keys"
        )
    if not _is_this_machine(host):
        raise Forbidden(f"without keys the host has to be localhost or 127.0.0.1, not {host[:80]!r}")
    if origin and origin.partition("://")[2] != host:
        raise Forbidden("without keys, pages of other origins are refused")
    return service.anonymous


@lru_cache(maxsize=64)
def _is_this_machine(host: str) -> bool:
    """Whether a host header is absent or a loopback name. Browsers always send one."""
    if not host:
        return True
    name = re.sub(r":\d+$", "", host).strip("[]").rstrip(".").lower()
    return is_loopback(name) or name.endswith(".localhost")
