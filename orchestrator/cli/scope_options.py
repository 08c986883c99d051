"""The caller of a command: whose documents it reads and writes."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, TypeAlias

import typer

from adapters import Scope
from adapters.model.document import MAX_ID_BYTES
from adapters.model.protection import HIGHEST_CLEARANCE
from orchestrator.auth.keyring import UnknownKey
from orchestrator.auth.principal import Principal
from orchestrator.planning.errors import BadRequest
from orchestrator.service.service import Service

Tenant: TypeAlias = Annotated[str | None, typer.Option(help="tenant of the documents; TRIVIUM_TENANT by default")]
Environment: TypeAlias = Annotated[
    str | None, typer.Option(help="environment of that tenant; TRIVIUM_ENVIRONMENT by default")
]


def caller(service: Service, tenant: str | None, environment: str | None) -> Principal:
    """The user of the command line, in the scope that the options name."""
    own = service.anonymous
    scope = Scope(
        own.scope.tenant if tenant is None else checked_name("tenant", tenant),
        own.scope.environment if environment is None else checked_name("environment", environment),
    )
    return replace(own, scope=scope)


def require_one_caller(tenant: str | None, environment: str | None, key: str | None, url: str | None) -> None:
    """Check that the options name one caller.

    :raises BadRequest: if a tenant or an environment is named beside a key or a service.
    """
    if (key or url) and (tenant or environment):
        raise BadRequest("--tenant and --environment are for the own data folder: a key has a tenant already")


def searcher(service: Service, tenant: str | None, environment: str | None, key: str | None) -> Principal:
    """The caller with an API key, or without one the user of the command line.

    :raises BadRequest: if there is no such key.
    :raises Forbidden: if the key has a user or teams, and the settings name some, too.
    """
    if key is None:
        return caller(service, tenant, environment)
    principal, own = caller_of_key(service, key), service.anonymous
    return principal.on_behalf_of(own.user, own.teams) if own.viewer.is_narrowed else principal


def owner(service: Service, tenant: str | None, environment: str | None) -> Principal:
    """The user of the command line, who sees every visibility with the highest clearance: who may use the data folder
    may read and write every document in it.
    """
    return replace(caller(service, tenant, environment), clearance=HIGHEST_CLEARANCE, user=None, teams=())


def checked_name(option: str, name: str) -> str:
    """The name of a tenant, an environment or a collection.

    :raises BadRequest: if it is empty, or too long.
    """
    if not 1 <= len(name.encode("utf-8", "surrogatepass")) <= MAX_ID_BYTES:
        raise BadRequest(f"--{option} is {name[:80]!r}, allowed are names of 1 to {MAX_ID_BYTES} bytes")
    return name


def caller_of_key(service: Service, key: str) -> Principal:
    """The principal of an API key.

    :raises BadRequest: if there are no keys, or not this one.
    """
    if service.keyring is None:
        raise BadRequest("--key needs the file of API keys: set TRIVIUM_KEYS_FILE, or --url of a running service")
    try:
        return service.keyring.authenticate(f"Bearer {key}")
    except UnknownKey as error:
        raise BadRequest("--key is no API key of this service: `trivium keys list` shows their names") from error
