"""``trivium generations``: lists the generations of the index, makes another one live, and drops those not needed."""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic
from typing import Annotated

import anyio
import typer
from rich.filesize import decimal

from adapters.model.spelling import allowed_names
from adapters.storage import files
from orchestrator.bootstrap.dropped_generation import drop_generation, paths_of
from orchestrator.bootstrap.other_generations import open_live, open_other
from orchestrator.cli.progress import duration
from orchestrator.cli.tables import Column, print_table
from orchestrator.cli.terminal import err, out, reported_errors, with_cli_timeout
from orchestrator.cli.verified_generation import MIN_OVERLAP, switch_to, verified
from orchestrator.indexing.generations.catalog import Catalog, Generation, Generations
from orchestrator.planning.errors import BadRequest
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import load

main = typer.Typer(help="The generations of the index: one is live, others are built beside it or were live before.")
_Name = Annotated[str, typer.Argument(help="a name from the list", metavar="NAME", show_default=False)]


@main.callback(invoke_without_command=True)
def list_generations(context: typer.Context) -> None:
    """List the generations, or make another one live, or drop one."""
    if context.invoked_subcommand:
        return
    with reported_errors():
        catalog = Catalog(load().storage.data_dir)
        known = catalog.read()
        rows = [
            (
                each.name,
                "live" if each.version == known.live else each.state,
                datetime.fromtimestamp(each.created_at, UTC).strftime("%Y-%m-%d %H:%M"),
                decimal(sum(map(files.size_bytes, paths_of(catalog, each)))),
                ", ".join(each.settings.values()),
            )
            for each in known.known
        ]
        if not rows:
            out.print("no generation: nothing has been indexed yet")
            return
        columns = [Column("generation"), Column("state"), Column("begun (UTC)"), Column("data folder")]
        print_table(out, [*columns, Column("built with", is_text=True)], rows)


@main.command()
def switch(
    name: _Name,
    *,
    min_overlap: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help=f"hits of searches that have to be the same as in the live index; {MIN_OVERLAP} by default, and 0 for "
            "one that was live before",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make a generation the live one, in one step, after it was brought up to date and verified."""
    start = monotonic()
    with reported_errors():
        settings = with_cli_timeout(load())
        generation = _named(Catalog(settings.storage.data_dir).read(), name)
        anyio.run(_switch, settings, generation, min_overlap)
        out.print(f"{name} is live", highlight=False)
        err.print(f"took {duration(monotonic() - start)}", highlight=False)


async def _switch(settings: Settings, generation: Generation, min_overlap: float | None) -> None:
    async with open_live(settings) as live, open_other(settings, generation) as target:
        switching = switch_to(live, target, generation)
        with switching.alone():
            default = MIN_OVERLAP if generation.left_at is None else 0.0
            await verified(live, target, switching, default if min_overlap is None else min_overlap)
            await switching.run()


@main.command()
def drop(name: _Name) -> None:
    """Delete a generation that is not live, with its indexes on servers."""
    start = monotonic()
    with reported_errors():
        settings = with_cli_timeout(load())
        generation = _named(Catalog(settings.storage.data_dir).read(), name)
        anyio.run(drop_generation, settings, generation)
        out.print(f"{name} is dropped", highlight=False)
        err.print(f"took {duration(monotonic() - start)}", highlight=False)


def _named(known: Generations, name: str) -> Generation:
    found = next((each for each in known.known if each.name == name), None)
    if found is None:
        raise BadRequest(
            f"there is no generation {name[:80]!r}, {allowed_names(name, [each.name for each in known.known])}"
        )
    if found.version == known.live:
        raise BadRequest(f"{name} is live already")
    return found
