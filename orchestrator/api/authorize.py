"""Who may do what: every path needs nothing, a key, or an administrator's key."""

from __future__ import annotations

from typing import Literal, TypeAlias

from starlette.datastructures import Headers

from adapters import Scope
from orchestrator.caller import Caller
from orchestrator.keys import Identity
from orchestrator.wiring import Service

Need: TypeAlias = Literal["nothing", "key", "admin"]

NOBODY = Identity("nobody", Caller(Scope("", ""), "public"), admin=False)
"""Whoever asks what needs no key."""


class NotAllowed(Exception):
    """Who asks is known, and may not do this."""


def identify(service: Service, headers: Headers, need: Need) -> Identity:
    """Who asks.

    :raises KeyUnknown: if a key is needed and none of ours is given.
    :raises NotAllowed: if no keys are needed, and a page of another site asks: whatever that is, it is not who sits
        at this machine, which is all that a service without keys listens to.
    """
    if need == "nothing":
        return NOBODY
    if not service.keys and (origin := headers.get("origin")) and origin.partition("://")[2] != headers.get("host"):
        raise NotAllowed("a page from elsewhere may not ask a service that needs no key")
    return service.identify(headers.get("authorization"))


def allow(identity: Identity, need: Need) -> None:
    """Nothing, if who asks may do it.

    :raises NotAllowed: if an administrator's key is needed and this is another.
    """
    if need == "admin" and not identity.admin:
        raise NotAllowed(f"the key {identity.name!r} may read, and this needs one that may administer")
