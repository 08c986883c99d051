"""``trivium keys``: add, remove and list API keys."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from msgspec import json, to_builtins

from adapters import Scope
from orchestrator.auth.key_admin import add_key, remove_key
from orchestrator.auth.keyring import KeyRecord, read_key_file
from orchestrator.cli.tables import Column, print_table
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
    user: Annotated[
        str | None, typer.Option(help="on whose behalf it acts: others' private documents are hidden")
    ] = None,
    team: Annotated[
        list[str] | None, typer.Option(help="of the user, may be repeated: documents of other teams are hidden")
    ] = None,
    *,
    admin: Annotated[bool, typer.Option("--admin", help="may write documents of its tenant")] = False,
    operator: Annotated[
        bool, typer.Option("--operator", help="may write, and read the counters of all tenants")
    ] = False,
    expires_in_days: Annotated[
        float | None, typer.Option("--expires-in-days", help="days until it is refused; never by default")
    ] = None,
) -> None:
    """Create a key and print it: it is not stored. A running service accepts it after TRIVIUM_REFRESH_INTERVAL_MS."""
    with _key_file() as path:
        scope = Scope(tenant, environment)
        key = add_key(
            path,
            name,
            scope,
            clearance,
            user=user,
            teams=team or (),
            admin=admin,
            operator=operator,
            expires_in_days=expires_in_days,
        )
    err.print(f"added to {path}; the key cannot be shown again:", soft_wrap=True, highlight=False)
    sys.stdout.write(key + "\n")


@main.command()
def remove(name: KeyName) -> None:
    """Revoke a key. A running service refuses it after TRIVIUM_REFRESH_INTERVAL_MS."""
    with _key_file() as path:
        remove_key(path, name)


@main.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="print the keys as JSON")] = False) -> None:
    """The id, name, scope, clearance, user, teams, role, creation and expiry of every key."""
    with _key_file() as path:
        records = read_key_file(path)
    if as_json:
        shown = [{name: value for name, value in to_builtins(each).items() if name != "sha256"} for each in records]
        sys.stdout.write(json.encode(shown).decode() + "\n")
        return
    names = ("name", "id", "tenant", "environment", "clearance", "acts for", "role", "created", "expires")
    rows = [
        (each.name, each.id, each.tenant, each.environment, each.clearance, _acts_for(each), each.role,
         _day(each.created_at, "unknown"), _day(each.expires_at, "never") + (" (expired)" if each.is_expired else ""))
        for each in records
    ]  # fmt: skip
    texts = {"name", "tenant", "environment", "acts for"}
    print_table(out, [Column(name, is_text=name in texts) for name in names], rows)


def _acts_for(key: KeyRecord) -> str:
    """The user and the teams of a key, such as ``alice (sales, legal)``."""
    if not key.user and not key.teams:
        return "all users"
    teams = ", ".join(key.teams)
    return f"{key.user} ({teams})" if key.user and teams else key.user or f"({teams})"


def _day(moment: datetime | None, if_none: str) -> str:
    return if_none if moment is None else moment.strftime("%Y-%m-%d %H:%M")


@contextmanager
def _key_file() -> Iterator[Path]:
    with reported_errors():
        path = load().access.keys_file
        if path is None:
            raise SettingsError("TRIVIUM_KEYS_FILE is not set: it names the file of API keys")
        yield path
