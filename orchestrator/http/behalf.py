"""The headers with which a request names the user on whose behalf it is sent."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.model.document import MAX_ID_BYTES
from adapters.model.spelling import allowed_names
from orchestrator.auth.principal import Principal
from orchestrator.http.errors import HttpError

USER, TEAMS = b"x-trivium-user", b"x-trivium-teams"
_PREFIX = b"x-trivium-"
_MAX_TEAMS = 256


def on_behalf(principal: Principal, headers: Mapping[bytes, bytes]) -> Principal:
    """The principal of a request, narrowed to the user and the teams that its headers name.

    :raises HttpError: 400 if a header of ours has another name, is empty, or is too long: what was to narrow a request
        is never ignored.
    :raises Forbidden: if the key has a user or teams of its own.
    """
    named = [name for name in headers if name.startswith(_PREFIX)]
    if not named:
        return principal
    for name in named:
        if name not in {USER, TEAMS}:
            given, known = name.decode("latin-1")[:80], (USER.decode(), TEAMS.decode())
            raise HttpError(400, f"unknown header {given!r}, {allowed_names(given, known)}")
    user = _name(USER, headers[USER]) if USER in headers else None
    teams = tuple(_name(TEAMS, each) for each in headers[TEAMS].split(b",")) if TEAMS in headers else ()
    if len(teams) > _MAX_TEAMS:
        raise HttpError(400, f"{TEAMS.decode()}: {len(teams)} teams, allowed are {_MAX_TEAMS}")
    return principal.on_behalf_of(user, teams)


def _name(header: bytes, value: bytes) -> str:
    try:
        name = value.strip().decode()
    except UnicodeDecodeError:
        raise HttpError(400, f"{header.decode()}: is not UTF-8") from None
    if not 1 <= len(name.encode()) <= MAX_ID_BYTES:
        raise HttpError(400, f"{header.decode()}: {name[:80]!r}, allowed are names of 1 to {MAX_ID_BYTES} bytes")
    return name
