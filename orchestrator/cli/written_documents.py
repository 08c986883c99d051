"""What commands that write documents do before and after, and say of what was written."""

from __future__ import annotations

from rich.markup import escape

from adapters import AdapterError, Scope
from adapters.model.errors import VersionMismatch
from orchestrator.cli.progress import duration, progress_steps
from orchestrator.cli.terminal import err, print_error
from orchestrator.service.document_reports import IndexReport
from orchestrator.service.service import Service


def require_own_build(service: Service) -> None:
    """Check the embedded index before the other replicas have what it cannot take.

    :raises VersionMismatch: if it was built with other settings.
    """
    if mismatch := service.search.mismatches().get("index"):
        raise VersionMismatch(mismatch)


async def optimize(service: Service, erase: bool = False) -> None:
    """Run the maintenance after many writes, and show its steps on the terminal.

    :param erase: as in :meth:`orchestrator.service.maintenance.MaintenanceService.optimize`.
    """
    with progress_steps(err, "optimizing") as step:
        await service.maintenance.optimize(step, erase)


async def optimized_count(service: Service, is_changed: bool = True) -> int | None:
    """Optimize the index if it has changed; the number of its documents, ``None`` if it cannot be read.

    The documents are durable nevertheless.
    """
    try:
        if is_changed:
            await optimize(service)
        return await service.count()
    except AdapterError as error:
        print_error(error.for_operators)
        return None


def is_applied(report: IndexReport) -> bool:
    """Whether every replica has every document."""
    return not (report.pending or report.rejected or report.undecided)


def unapplied(report: IndexReport) -> dict[str, object]:
    """What replicas do not have, as a part of an outcome in JSON; empty if they have everything."""
    if is_applied(report):
        return {}
    refused = {key[-1]: reasons for key, reasons in report.rejected.items()}
    return {"pending": len(report.undecided), "missing": report.pending, "refused": refused}


def print_unapplied(report: IndexReport) -> None:
    """Print what replicas do not have."""
    for replica, reason in report.pending.items():
        err.print(f"[red]{escape(replica)} has not applied every write yet: {escape(reason)}[/red]", soft_wrap=True)
    for (*_, id_), reasons in report.rejected.items():
        err.print(f"[red]{escape(f'{id_}: {reasons}')}[/red]", soft_wrap=True)


def print_where(scope: Scope, written: str, seconds: float) -> None:
    """Print where documents were written, and how long it took."""
    err.print(
        f"tenant {escape(scope.tenant)}, environment {escape(scope.environment)}, {escape(written)}; "
        f"took {duration(seconds)}",
        soft_wrap=True,
        highlight=False,
    )
