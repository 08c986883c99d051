"""A running service, for commands with ``--url``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

from adapters.model.errors import Unavailable
from adapters.ports.optional_packages import extra
from orchestrator.planning.errors import BadRequest
from orchestrator.settings.loading import load

if TYPE_CHECKING:
    from orchestrator.client import Client


@contextmanager
def remote_client(url: str, key: str | None, timeout_s: float) -> Iterator[Client]:
    """A client of a service, for the user and the teams of the settings.

    :raises BadRequest: if the URL is none of a service, or the service refuses a request.
    :raises AdapterError: if it cannot be reached, or fails.
    """
    with extra("client"):
        from orchestrator.client import Client, Refused, TriviumError  # noqa: PLC0415  # most commands need no client
    access = load().access
    try:
        client = Client(url, key, user=access.user, teams=access.teams, timeout_s=timeout_s)
    except ValueError as error:
        raise BadRequest(f"--{error}") from error
    try:
        with client:
            yield client
    except Refused as error:
        kind = BadRequest if error.status < HTTPStatus.INTERNAL_SERVER_ERROR else Unavailable
        raise kind(f"{url}: {error}") from error
    except TriviumError as error:
        raise Unavailable(str(error)) from error
