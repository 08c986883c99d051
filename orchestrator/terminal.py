"""A person at a terminal: where output goes, and errors in a line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeAlias

import msgspec
import typer
from rich.console import Console
from rich.markup import escape

from adapters import AdapterError
from orchestrator.complaint import complaint
from orchestrator.keys import KeysError
from orchestrator.outcome import AllSourcesFailed
from orchestrator.plan import BadRequest
from orchestrator.serving import NotLoopback
from orchestrator.settings import SettingsError

_Kinds: TypeAlias = tuple[type[Exception], ...]

_WRONG_USE: _Kinds = (SettingsError, KeysError, BadRequest, NotLoopback)
_NOT_WELL: _Kinds = (AdapterError, AllSourcesFailed, OSError)

out = Console()
err = Console(stderr=True)


@contextmanager
def told(wrong_use: _Kinds = (), not_well: _Kinds = ()) -> Iterator[None]:
    """Errors that are somebody's to mend are told in a line, without a trace; it ends with 2 for wrong use, else 1.

    :param wrong_use: what counts as wrong use beside what does for every command.
    :param not_well: what else is told.
    """
    try:
        yield
    except msgspec.ValidationError as error:
        _fail(complaint(error), code=2)
    except (*_WRONG_USE, *wrong_use) as error:
        _fail(str(error), code=2)
    except (*_NOT_WELL, *not_well) as error:
        _fail(str(error), code=1)


def _fail(message: str, code: int) -> NoReturn:
    err.print(f"[red]trivium: {escape(message)}[/red]", soft_wrap=True)
    raise typer.Exit(code)
