"""``trivium keys``: give out keys, take them back, see who has one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from adapters import Scope
from orchestrator import keys
from orchestrator import settings as settings_
from orchestrator.settings import SettingsError
from orchestrator.terminal import err, out, told

main = typer.Typer(help="Keys of the API, in the file that TRIVIUM_KEYS_FILE names.", no_args_is_help=True)

Called = Annotated[str, typer.Argument(help="what the log calls whoever has the key")]


@main.command()
def add(
    name: Called,
    tenant: Annotated[str, typer.Option(help="whose documents it reaches")] = "default",
    environment: Annotated[str, typer.Option(help="and which of them")] = "default",
    clearance: Annotated[str, typer.Option(help="up to public, normal, sensitive or restricted")] = "normal",
    admin: Annotated[bool, typer.Option("--admin", help="may write, and look into the cache")] = False,
) -> None:
    """Make a key, and print it: it is kept nowhere. A running service takes it at its next look, TRIVIUM_FOLLOW_MS."""
    with _file() as path:
        made = keys.add(path, name, Scope(tenant, environment), clearance, admin)
    err.print(f"in {path}; the key cannot be shown again:", soft_wrap=True, highlight=False)
    sys.stdout.write(made + "\n")


@main.command()
def remove(name: Called) -> None:
    """Take a key back. A running service refuses it from its next look, TRIVIUM_FOLLOW_MS."""
    with _file() as path:
        keys.remove(path, name)


@main.command("list")
def list_() -> None:
    """Who has a key, and what it may."""
    with _file() as path:
        lines = keys.read(path)
    table = Table("name", "tenant", "environment", "clearance", "admin")
    for line in lines:
        table.add_row(
            *map(escape, (line.name, line.tenant, line.environment, line.clearance)), "yes" if line.admin else ""
        )
    out.print(table)


@contextmanager
def _file() -> Iterator[Path]:
    with told():
        path = settings_.read().keys_file
        if path is None:
            raise SettingsError("TRIVIUM_KEYS_FILE is not set: it names the file that keys are kept in")
        yield path
