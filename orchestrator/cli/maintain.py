"""``trivium tidy``, ``trivium doctor``, ``trivium rebuild`` and ``trivium quarantine``."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated

import anyio.to_thread
import typer
from rich.markup import escape
from rich.table import Table

from adapters import AdapterError
from orchestrator.bootstrap.embedded import rebuild_index
from orchestrator.cli.progress import progress_bar, progress_steps
from orchestrator.cli.terminal import err, out, reported_errors, with_cli_timeout, with_service
from orchestrator.service.health import Finding, examine_folder
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import load


async def optimize(service: Service, erase: bool = False) -> None:
    """Run the maintenance after many writes, and show its steps on the terminal.

    :param erase: as in :meth:`orchestrator.service.maintenance.MaintenanceService.optimize`.
    """
    with progress_steps(err, "optimizing") as step:
        await service.maintenance.optimize(step, erase)


def tidy(
    *,
    measure: Annotated[
        bool, typer.Option("--measure", help="only measure, without merging, at the lowest priority")
    ] = False,
) -> None:
    """Merge segments and measure the documents again, after many writes over HTTP."""
    with reported_errors():
        if measure:
            _lower_priority()
        with_service(with_cli_timeout(load()), _measure if measure else partial(optimize, erase=True))


async def _measure(service: Service) -> None:
    await service.maintenance.measure(lambda _: None)


def _lower_priority() -> None:
    """Use only processor time that is otherwise idle."""
    os.nice(19)
    if hasattr(os, "SCHED_IDLE"):  # Linux
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def doctor() -> None:
    """Examine everything that the settings name, and give advice for each problem."""
    with reported_errors():
        findings = examine(with_cli_timeout(load()))
    for finding in findings:
        mark = "[green]ok[/green]  " if finding.is_well else "[red]fail[/red]"
        advice = f" -> {finding.advice}" if finding.advice else ""
        out.print(f"{mark} {finding.subject}: {escape(finding.observation + advice)}", soft_wrap=True)
    raise typer.Exit(0 if all(finding.is_well for finding in findings) else 1)


def examine(settings: Settings) -> list[Finding]:
    """Every finding: folders first, because the service cannot be opened without them."""
    findings = [
        examine_folder("data folder", settings.storage.data_dir, "TRIVIUM_DATA_DIR"),
        examine_folder("model folder", settings.storage.model_dir, "TRIVIUM_MODEL_DIR"),
    ]

    async def run(service: Service) -> list[Finding]:
        return await service.health.examine()

    try:
        findings += with_service(settings, run, prepare=False)
    except (AdapterError, OSError) as error:
        observation = error.for_operators if isinstance(error, AdapterError) else str(error)
        advice = "follow the message; the rest cannot be examined until then"
        findings.append(Finding("service", False, observation, advice))
    return findings


def rebuild(
    *,
    with_deleted: Annotated[
        bool,
        typer.Option("--with-deleted", help="restore every document if it is not known which were deleted"),
    ] = False,
) -> None:
    """Replace a damaged embedded index with a new one that contains every undamaged document."""
    with reported_errors(), progress_bar(err, "rebuilding", "documents", None) as advance:
        rebuilt = rebuild_index(load(), with_deleted, advance)
    out.print(
        f"{rebuilt.documents} documents, {rebuilt.encoded} of them encoded again, {rebuilt.lost} lost; "
        f"the damaged index is in {rebuilt.old}",
        soft_wrap=True,
    )
    raise typer.Exit(1 if rebuilt.lost else 0)


def quarantine(
    *, retry: Annotated[bool, typer.Option("--retry", help="write them again to those replicas")] = False
) -> None:
    """List the documents that a replica refuses while it accepts others; the other replicas have them."""

    async def run(service: Service) -> None:
        if retry:
            err.print(f"{await service.maintenance.retry_refused()} accepted")
        table = Table("replica", "tenant", "environment", "id", "reason")
        for each in await anyio.to_thread.run_sync(service.maintenance.refused):
            table.add_row(each.replica, *map(escape, (*each.key, each.reason)))
        out.print(table)

    with reported_errors():
        with_service(with_cli_timeout(load()), run)
