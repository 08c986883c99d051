"""Output on a terminal, and errors in one line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from tempfile import TemporaryDirectory
from typing import NoReturn, TypeAlias, TypeVar

import anyio
import msgspec
import typer
from rich.console import Console
from rich.markup import escape

from adapters import AdapterError
from adapters.model.errors import reason_of
from orchestrator.auth.keyring import KeyFileError
from orchestrator.auth.principal import Forbidden
from orchestrator.bootstrap.service import open_service
from orchestrator.execution.stage_results import AllSourcesFailed
from orchestrator.http.server import NotLoopback
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.decode import InvalidInput, describe_decode_error
from orchestrator.service.folder_health import has_data
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import SettingsError

T = TypeVar("T")
_Errors: TypeAlias = tuple[type[Exception], ...]

_USAGE_ERRORS: _Errors = (SettingsError, KeyFileError, BadRequest, NotLoopback, Forbidden, InvalidInput)
_FAILURES: _Errors = (AdapterError, AllSourcesFailed, OSError)

CLI_TIMEOUT_MS = 10_000
"""Time limit of the sources in a command: long enough for a cold start."""

out = Console()
err = Console(stderr=True)


@contextmanager
def reported_errors(usage_errors: _Errors = (), failures: _Errors = ()) -> Iterator[None]:
    """Print errors that a user can correct in one line, without a trace. Exit code 2 for wrong use, else 1.

    :param usage_errors: errors of wrong use besides those of every command.
    :param failures: other errors besides those of every command.
    """
    try:
        yield
    except msgspec.ValidationError as error:
        _exit(describe_decode_error(error), code=2)
    except (*_USAGE_ERRORS, *usage_errors) as error:
        _exit(str(error), code=2)
    except (*_FAILURES, *failures) as error:
        _exit(reason_of(error), code=1)


def printable(text: str) -> str:
    """The text without control characters, because a terminal executes some of them."""
    return "".join(each for each in text if each.isprintable())


def print_error(message: str) -> None:
    """Print one line on standard error."""
    err.print(f"[red]trivium: {escape(message)}[/red]", soft_wrap=True)


def _exit(message: str, code: int) -> NoReturn:
    print_error(message)
    raise typer.Exit(code)


def with_cli_timeout(settings: Settings) -> Settings:
    """The same settings with the time limit of commands."""
    return settings.changed(source_timeout_ms=CLI_TIMEOUT_MS)


def lacks_data(settings: Settings) -> bool:
    """Whether there is no data folder, and no source is on a server."""
    is_on_servers = any(map(settings.sources.address, settings.sources.urls))
    return not (is_on_servers or has_data(settings.storage.data_dir))


@contextmanager
def for_reading(settings: Settings) -> Iterator[Settings]:
    """The settings for a command that only reads: without a data folder, those of an empty one elsewhere, so that a
    mistyped name leaves nothing behind.
    """
    if not lacks_data(settings):
        yield settings
        return
    with TemporaryDirectory() as folder:
        yield settings.changed(data_dir=folder)


def no_documents(settings: Settings) -> str:
    """What to do about an index without documents."""
    return (
        f"the index in {settings.storage.data_dir} has no documents: `trivium index PATH` adds some; TRIVIUM_DATA_DIR "
        "names another folder"
    )


def with_service(
    settings: Settings, work: Callable[[Service], Awaitable[T]], prepare: bool = True, writes: bool = False
) -> T:
    """Open the service, work with it and close it, on one event loop.

    :param writes: whether the command may create a data folder.
    """

    async def run(chosen: Settings) -> T:
        async with open_service(chosen, prepare=prepare) as service:
            return await work(service)

    with nullcontext(settings) if writes else for_reading(settings) as chosen:
        return anyio.run(run, chosen)
