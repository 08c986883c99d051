"""``trivium keys``: add, remove and list API keys."""

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
from orchestrator.auth.key_admin import add_key, remove_key
from orchestrator.auth.keyring import read_key_file
from orchestrator.cli.terminal import err, out, reported_errors
from orchestrator.settings.loading import SettingsError, load

main = typer.Typer(help="Keys of the API, in the file that TRIVIUM_KEYS_FILE names.", no_args_is_help=True)

KeyName = Annotated[str, typer.Argument(help="name of the key in the log")]


@main.command()
def add(
    name: KeyName,
    tenant: Annotated[str, typer.Option(help="tenant whose documents it may access")] = "default",
    environment: Annotated[str, typer.Option(help="environment of that tenant")] = "default",
    clearance: Annotated[str, typer.Option(help="up to public, normal, sensitive or restricted")] = "normal",
    admin: Annotated[bool, typer.Option("--admin", help="may write documents of its tenant")] = False,
    operator: Annotated[
        bool, typer.Option("--operator", help="may write, and read the counters of all tenants")
    ] = False,
) -> None:
    """Create a key and print it: it is not stored. A running service accepts it after TRIVIUM_REFRESH_INTERVAL_MS."""
    with _key_file() as path:
        key = add_key(path, name, Scope(tenant, environment), clearance, admin=admin, operator=operator)
    err.print(f"added to {path}; the key cannot be shown again:", soft_wrap=True, highlight=False)
    sys.stdout.write(key + "\n")


@main.command()
def remove(name: KeyName) -> None:
    """Revoke a key. A running service refuses it after TRIVIUM_REFRESH_INTERVAL_MS."""
    with _key_file() as path:
        remove_key(path, name)


@main.command("list")
def list_() -> None:
    """The name, scope, clearance and role of every key."""
    with _key_file() as path:
        records = read_key_file(path)
    table = Table("name", "tenant", "environment", "clearance", "role")
    for each in records:
        values = (each.name, each.tenant, each.environment, each.clearance, each.role)
        table.add_row(*map(escape, values))
    out.print(table)


@contextmanager
def _key_file() -> Iterator[Path]:
    with reported_errors():
        path = load().access.keys_file
        if path is None:
            raise SettingsError("TRIVIUM_KEYS_FILE is not set: it names the file of API keys")
        yield path
