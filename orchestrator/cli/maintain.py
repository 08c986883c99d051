"""``trivium tidy``, ``trivium doctor``, ``trivium rebuild`` and ``trivium quarantine``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Annotated

import anyio.to_thread
import msgspec
import typer
from rich.markup import escape

from adapters import AdapterError
from adapters.model.errors import reason_of
from orchestrator.auth.keyring import KeyFileError, read_key_file
from orchestrator.bootstrap.embedded import documents_in, rebuild_index
from orchestrator.bootstrap.generations import live_settings, unused_settings
from orchestrator.cli.progress import duration, progress_bar
from orchestrator.cli.tables import Column, print_table
from orchestrator.cli.terminal import (
    err,
    lacks_data,
    no_documents,
    out,
    reported_errors,
    with_cli_timeout,
    with_service,
)
from orchestrator.cli.written_documents import optimize
from orchestrator.indexing.generations.catalog import Catalog
from orchestrator.planning.errors import BadRequest
from orchestrator.service.folder_health import examine_data_folder, examine_folder, has_data
from orchestrator.service.health import Finding
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import FILE_VARIABLE, SettingsError, load, not_default

_MAX_NAMED = 5


def tidy(
    *,
    measure: Annotated[
        bool, typer.Option("--measure", help="only measure, without merging, at the lowest priority")
    ] = False,
) -> None:
    """Merge segments and measure the documents again, after many writes over HTTP."""
    start = monotonic()
    with reported_errors():
        if measure:
            _lower_priority()

        async def run(service: Service) -> int:
            await (_measure(service) if measure else optimize(service, erase=True))
            return await service.count()

        settings = load()
        documents = with_service(with_cli_timeout(settings), run)
        others = Catalog(settings.storage.data_dir).read().others
    if others and not measure:
        names = ", ".join(each.name for each in others)
        message = f"documents that were deleted since are still in {names}: `trivium generations drop` deletes it"
        err.print(message, style="yellow", soft_wrap=True, highlight=False)
    done = "measured" if measure else "merged and measured"
    err.print(f"{documents} documents {done}; took {duration(monotonic() - start)}", highlight=False)


async def _measure(service: Service) -> None:
    await service.maintenance.measure(lambda _: None)


def _lower_priority() -> None:
    """Use only processor time that is otherwise idle."""
    os.nice(19)
    if hasattr(os, "SCHED_IDLE"):  # Linux
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def doctor(*, as_json: Annotated[bool, typer.Option("--json", help="print the findings as JSON")] = False) -> None:
    """Examine everything that the settings name, and give advice for each problem. Nothing is changed."""
    start = monotonic()
    with reported_errors():
        findings = examine(with_cli_timeout(load()))
    problems = sum(not finding.is_well for finding in findings)
    if as_json:
        sys.stdout.write(msgspec.json.encode({"problems": problems, "findings": findings}).decode() + "\n")
    else:
        for finding in findings:
            mark = "[green]ok[/green]  " if finding.is_well else "[red]fail[/red]"
            advice = f" -> {finding.advice}" if finding.advice else ""
            out.print(f"{mark} {finding.subject}: {escape(finding.observation + advice)}", soft_wrap=True)
        need = "1 needs" if problems == 1 else f"{problems} need"
        verdict = f"[red]{need} attention[/red]" if problems else "[green]nothing needs attention[/green]"
        out.print(f"{len(findings)} examined, {verdict}; took {duration(monotonic() - start)}", highlight=False)
    raise typer.Exit(1 if problems else 0)


def examine(settings: Settings) -> list[Finding]:
    """Every finding, each once. Without an index in the data folder the rest is examined in a folder of its own."""
    data_dir = settings.storage.data_dir
    findings = [
        _examine_settings(settings),
        examine_data_folder(data_dir, "TRIVIUM_DATA_DIR", is_default=data_dir == Settings().storage.data_dir),
        examine_folder("model folder", settings.storage.model_dir, "TRIVIUM_MODEL_DIR"),
    ]
    findings += _examine_generations(settings)
    if settings.access.keys_file is not None:
        findings.append(_examine_keys(settings.access.keys_file))
        if not findings[-1].is_well:
            settings = settings.changed(keys_file=None)

    async def run(service: Service) -> list[Finding]:
        return await service.health.examine()

    try:
        with TemporaryDirectory() if not has_data(data_dir) else nullcontext(str(data_dir)) as folder:
            findings += with_service(settings.changed(data_dir=folder), run, prepare=False, writes=True)
    except (AdapterError, SettingsError, OSError) as error:
        advice = "follow the message; the rest cannot be examined until then"
        findings.append(Finding("service", False, reason_of(error), advice))
    return list({(each.subject, each.observation): each for each in findings}.values())


def _examine_settings(settings: Settings) -> Finding:
    """The settings that are in effect, as far as they are not the defaults."""
    changed = ", ".join(f"{name}={value}" for name, value in sorted(not_default(settings).items()))
    file = os.environ.get(FILE_VARIABLE)
    return Finding("settings", True, f"{changed or 'the defaults'}{f'; with those of {file}' if file else ''}")


def _examine_generations(settings: Settings) -> Iterator[Finding]:
    """Which generations there are, and whether the live one was built with these settings."""
    try:
        known = Catalog(settings.storage.data_dir).read()
    except AdapterError as error:
        yield Finding("generations", False, error.for_operators, "restore the file from a backup")
        return
    live = known.get(known.live)
    if live and known.others:
        others = ", ".join(f"{each.name} ({each.state})" for each in known.others)
        yield Finding("generations", True, f"{live.name} is live, beside it: {others}")
    if live and (unused := unused_settings(settings, live)):
        yield Finding("live index", False, unused, "`trivium backfill` builds an index with them, or set them back")


def _examine_keys(path: Path) -> Finding:
    """Whether the file of API keys can be read, and how many keys it has."""
    try:
        records = read_key_file(path)
    except KeyFileError as error:
        return Finding("API keys", False, str(error), "correct the file; `trivium keys add` creates it")
    expired = [each.name for each in records if each.is_expired]
    named = f" ({', '.join(expired[:_MAX_NAMED])})" if expired else ""
    return Finding("API keys", True, f"{path} has {len(records)}, {len(expired)} of them expired{named}")


def rebuild(
    *,
    with_deleted: Annotated[
        bool,
        typer.Option("--with-deleted", help="restore every document if it is not known which were deleted"),
    ] = False,
) -> None:
    """Replace a damaged embedded index with a new one that contains every undamaged document."""
    start = monotonic()
    with reported_errors():
        settings = load()
        if lacks_data(settings):
            raise BadRequest(no_documents(settings))
        settings = live_settings(settings)
        with progress_bar(err, "rebuilding", "documents", documents_in(settings)) as advance:
            rebuilt = rebuild_index(settings, with_deleted, advance)
    out.print(
        f"{rebuilt.documents} documents, {rebuilt.encoded} of them encoded again, {rebuilt.lost} lost; "
        f"the damaged index is in {rebuilt.old}",
        soft_wrap=True,
    )
    err.print(f"took {duration(monotonic() - start)}", highlight=False)
    raise typer.Exit(1 if rebuilt.lost else 0)


def quarantine(
    *, retry: Annotated[bool, typer.Option("--retry", help="write them again to those replicas")] = False
) -> None:
    """List the documents that a replica refuses while it accepts others; the other replicas have them."""

    async def run(service: Service) -> None:
        if retry:
            err.print(f"{await service.maintenance.retry_refused()} accepted")
        refused = await anyio.to_thread.run_sync(service.maintenance.refused)
        if refused:
            columns = [Column(name, is_text=True) for name in ("replica", "tenant", "environment", "id", "reason")]
            print_table(out, columns, [(each.replica, *each.key, each.reason) for each in refused])
        out.print(f"{len(refused)} documents are refused")

    with reported_errors():
        with_service(with_cli_timeout(load()), run)
