"""The headers with which a request names the user on whose behalf it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapters.model.protection import check_name
from adapters.model.spelling import allowed_names
from orchestrator.auth.principal import Principal
from orchestrator.http.errors import HttpError

USER, TEAMS = b"x-trivium-user", b"x-trivium-teams"
_PREFIX = b"x-trivium"
"""Of every header that may be meant to narrow a request."""
_MAX_TEAMS = 256


def on_behalf(principal: Principal, headers: Mapping[bytes, bytes]) -> Principal:
    """The principal of a request, narrowed to the user and the teams that its headers name.

    :raises HttpError: 400 if such a header has another name, or a value that names nothing: what was to narrow a
        request is never ignored.
    :raises Forbidden: if the principal acts for a user or teams already.
    """
    named = [name for name in headers if name.replace(b"_", b"-").startswith(_PREFIX)]
    if not named:
        return principal
    for name in named:
        if name not in {USER, TEAMS}:
            given, known = name.decode("latin-1")[:80], (USER.decode(), TEAMS.decode())
            raise HttpError(400, f"unknown header {given!r}, {allowed_names(given, known)}")
    (user,) = _names(USER, [headers[USER]]) if USER in headers else (None,)
    teams = _names(TEAMS, headers[TEAMS].split(b",")) if TEAMS in headers else ()
    if len(teams) > _MAX_TEAMS:
        raise HttpError(400, f"{TEAMS.decode()}: {len(teams)} teams, allowed are {_MAX_TEAMS}")
    return principal.on_behalf_of(user, teams)


def _names(header: bytes, values: Sequence[bytes]) -> tuple[str, ...]:
    try:
        return tuple(check_name(header.decode(), value.strip().decode()) for value in values)
    except UnicodeDecodeError:
        raise HttpError(400, f"{header.decode()}: is not UTF-8") from None
    except ValueError as error:
        raise HttpError(400, str(error)) from error
