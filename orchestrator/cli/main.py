"""``trivium``: every command. Exit codes: 0 success, 1 failure or partial success, 2 wrong use."""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import Annotated

import typer

from orchestrator.cli import (
    backfill_command,
    demo,
    documents_command,
    evaluate_command,
    fill_command,
    generations_command,
    index_command,
    judge_command,
    judgments_command,
    keys,
    leftovers_command,
    maintain,
    mcp_command,
    preferences_command,
    search_command,
    serve_command,
    shadow_command,
    tune_command,
)

main = typer.Typer(
    help="Search over vectors, a knowledge graph and keywords at once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"trivium {version('trivium')}")
        raise typer.Exit


@main.callback()
def all_commands(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Search over vectors, a knowledge graph and keywords at once."""
    os.umask(0o077)  # files have documents or queries, which other users must not read


main.command()(demo.demo)
main.command()(serve_command.serve)
main.command()(mcp_command.mcp)
main.command()(index_command.index)
main.command()(search_command.search)
main.command("list")(documents_command.list_documents)
main.command()(documents_command.export)
main.command()(documents_command.delete)
main.command()(fill_command.fill)
main.command()(backfill_command.backfill)
main.add_typer(generations_command.main, name="generations")
main.command()(maintain.tidy)
main.command()(maintain.doctor)
main.command()(maintain.rebuild)
main.command()(maintain.quarantine)
main.command()(leftovers_command.leftovers)
main.command()(judge_command.judge)
main.command()(judgments_command.judgments)
main.command()(preferences_command.preferences)
main.command()(evaluate_command.evaluate)
main.command()(tune_command.tune)
main.command()(tune_command.compare)
main.command()(shadow_command.shadow)
main.add_typer(keys.main, name="keys")
