"""``trivium``: every command. Exit codes: 0 success, 1 failure or partial success, 2 wrong use."""

from __future__ import annotations

import os

import typer

from orchestrator.cli import demo, evaluate, index, keys, maintain, search, serve

main = typer.Typer(
    help="Search over vectors, a knowledge graph and keywords at once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@main.callback()
def private_files() -> None:
    """Let no other user of the machine read what a command writes: it contains documents or queries."""
    os.umask(0o077)


main.command()(demo.demo)
main.command()(serve.serve)
main.command()(index.index)
main.command()(search.search)
main.command()(maintain.tidy)
main.command()(maintain.doctor)
main.command()(maintain.rebuild)
main.command()(maintain.quarantine)
main.command()(evaluate.evaluate)
main.command()(evaluate.tune)
main.command()(evaluate.compare)
main.add_typer(keys.main, name="keys")
