"""Who may do what: every path needs nothing, a key, or an administrator's key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from adapters import Scope
from orchestrator.caller import Caller
from orchestrator.keys import Identity
from orchestrator.loopback import is_loopback
from orchestrator.wiring import Service

Need: TypeAlias = Literal["nothing", "key", "admin"]

NOBODY = Identity("nobody", Caller(Scope("", ""), "public"), admin=False)
"""Whoever asks what needs no key."""


class NotAllowed(Exception):
    """Who asks is known, and may not do this."""


def identify(service: Service, headers: Mapping[bytes, bytes], need: Need) -> Identity:
    """Who asks.

    :raises KeyUnknown: if a key is needed and none of ours is given.
    :raises NotAllowed: if no keys are needed, and a page of another site asks, by its own name or by one that it has
        turned to this machine: it is not who sits here, which is all that a service without keys listens to.
    """
    if need == "nothing":
        return NOBODY
    if service.keys:
        return service.keys.identify(headers.get(b"authorization", b"").decode("latin-1"))
    host, origin = headers.get(b"host", b"").decode("latin-1"), headers.get(b"origin", b"").decode("latin-1")
    if not _is_here(host):
        raise NotAllowed(f"without keys this service is called localhost or 127.0.0.1, and not {host[:80]!r}")
    if origin and origin.partition("://")[2] != host:
        raise NotAllowed("a page from elsewhere may not ask a service that needs no key")
    return service.anybody


@lru_cache(maxsize=64)
def _is_here(host: str) -> bool:
    """Whether a request calls this machine by a name that nobody else can give it. None at all is no browser's."""
    if not host:
        return True
    name = re.sub(r":\d+$", "", host).strip("[]").rstrip(".").lower()
    return is_loopback(name) or name.endswith(".localhost")


def allow(identity: Identity, need: Need) -> None:
    """Nothing, if who asks may do it.

    :raises NotAllowed: if an administrator's key is needed and this is another.
    """
    if need == "admin" and not identity.admin:
        raise NotAllowed(f"the key {identity.name!r} may read, and this needs one that may administer")
