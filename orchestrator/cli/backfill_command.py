"""``trivium backfill``: builds a generation beside the live one."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, time
from typing import Annotated, NamedTuple

import anyio
import anyio.to_thread
import typer
from rich.filesize import decimal

from adapters import Scope
from adapters.storage import files
from orchestrator.bootstrap.embedded import INDEX_FOLDER
from orchestrator.bootstrap.other_generations import begin, open_empty, open_live, open_origin, open_other
from orchestrator.cli.progress import duration, progress_bar
from orchestrator.cli.terminal import err, for_reading, lacks_data, no_documents, out, reported_errors, with_cli_timeout
from orchestrator.cli.verified_generation import MIN_OVERLAP, switch_to, verified
from orchestrator.cli.written_documents import optimize
from orchestrator.indexing.corpus import corpus_file
from orchestrator.indexing.generations.catalog import Catalog, Generation
from orchestrator.indexing.generations.origins import Files, Origin, Shard, StoredDocuments
from orchestrator.indexing.pipeline import MAX_WRITE_DOCUMENTS
from orchestrator.planning.errors import BadRequest
from orchestrator.service.backfill import Backfill
from orchestrator.service.service import Service
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import load
from orchestrator.telemetry.logging import configure_logging, with_field

_log = logging.getLogger(__name__)

_MAX_SHARDS = 1_024


class _Options(NamedTuple):
    """What the command was asked for."""

    run_id: str
    resume: bool
    shard: Shard | None
    switch: bool
    min_overlap: float


def backfill(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="NDJSON files, or folders with documents.ndjson or a BEIR corpus; by default the documents of the "
            "live index",
            metavar="[PATH...]",
            show_default=False,
        ),
    ] = None,
    *,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the one that is being built, if any")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="only estimate time and bytes; nothing is written")
    ] = False,
    batch: Annotated[int, typer.Option(min=1, max=MAX_WRITE_DOCUMENTS, help="documents of a write")] = (
        MAX_WRITE_DOCUMENTS
    ),
    shard: Annotated[
        str | None,
        typer.Option(help="i/n: encode only this part; the last of n processes writes all. i is 0 to n, and 0 is n"),
    ] = None,
    switch: Annotated[bool, typer.Option("--switch", help="make it the live one afterwards")] = False,
    min_overlap: Annotated[
        float,
        typer.Option(min=0, max=1, help="hits of searches that have to be the same as in the live index, before it"),
    ] = MIN_OVERLAP,
) -> None:
    """Build a new index beside the live one with the settings of now, from the stored documents or from files.

    Searches and writes go on meanwhile. It becomes live by --switch or `trivium generations switch`, in one step.
    """
    start = monotonic()
    with reported_errors(), _logged() as run_id:
        settings = with_cli_timeout(load())
        part = None if shard is None else parsed_shard(shard)
        origin = tuple(str(_existing(path).resolve()) for path in paths or ())
        shards = part.shards if part else 1
        wanted = Generation(
            "", 0, {}, time(), origin, Files.state(origin), shards=shards, batch=batch, state="building"
        )
        if dry_run:
            with for_reading(settings) as chosen:
                anyio.run(_estimate, chosen, wanted)
            return
        if not origin and lacks_data(settings):
            raise BadRequest(no_documents(settings))
        name = anyio.run(_build, settings, wanted, _Options(run_id, resume, part, switch, min_overlap))
        if name and not switch:
            overlap = "" if min_overlap == MIN_OVERLAP else f" --min-overlap {min_overlap:g}"
            out.print(
                f"make it live with `trivium generations switch {name}{overlap}`", highlight=False, soft_wrap=True
            )
        err.print(f"took {duration(monotonic() - start)}", highlight=False)


def parsed_shard(value: str) -> Shard:
    """``i/n`` as a shard.

    :raises BadRequest: if it has another form.
    """
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", value)
    number, shards = (int(each) for each in match.groups()) if match else (1, 0)
    if not (0 <= number <= shards <= _MAX_SHARDS and shards):
        raise BadRequest(f"--shard is {value[:80]!r}, allowed is i/n with i from 0 to n, and n up to {_MAX_SHARDS}")
    return Shard(number % shards, shards)


def _existing(path: Path) -> Path:
    """A file or folder with documents.

    :raises BadRequest: if it is none.
    """
    if str(path) == "-":
        raise BadRequest("standard input cannot be read again after an interruption: write it to a file")
    if not path.exists():
        raise BadRequest(f"there is no file or folder {str(path)!r}")
    if path.is_dir() and corpus_file(path) is None:
        raise BadRequest(
            f"{path} has neither documents.ndjson nor a BEIR corpus: to build from a folder of files, build from the "
            "stored documents, switch, and run `trivium index` on the folder"
        )
    return path


@contextmanager
def _logged() -> Iterator[str]:
    """A run id, which every line of the log has. Without a terminal the log is JSON on standard error."""
    run_id = os.urandom(4).hex()
    with with_field("run", run_id):
        if not err.is_terminal:
            configure_logging("info")
        yield run_id


def _origin(origin: tuple[str, ...], live: Service, target: Service) -> Origin:
    if not origin:
        return StoredDocuments(live.stores)
    access = target.settings.access
    return Files(origin, Scope(access.tenant, access.environment), target.stores)


async def _estimate(settings: Settings, wanted: Generation) -> None:
    async with open_live(settings) as live, open_empty(settings) as target:
        origin = _origin(wanted.origin, live, target)
        probe = await Backfill(Catalog(settings.storage.data_dir), wanted, origin, live.stores, target.stores).probe()
        size = await anyio.to_thread.run_sync(files.size_bytes, live.settings.storage.data_dir / INDEX_FOLDER)
    how = f"{probe.encoded} were encoded to estimate it" if probe.encoded else "their vectors are copied"
    out.print(
        f"{probe.documents:,} documents would be read, {duration(probe.seconds)} to encode them ({how}), "
        f"{decimal(probe.vector_bytes)} of vectors; the live index has {decimal(size)} in its data folder; nothing was "
        "written",
        highlight=False,
        soft_wrap=True,
    )


async def _build(settings: Settings, wanted: Generation, options: _Options) -> str:
    """Returns the name of the generation; empty if other processes have to end first."""
    is_shard = options.shard is not None
    async with open_origin(settings, options.resume or is_shard) as origin:
        catalog = Catalog(settings.storage.data_dir)
        building = (await anyio.to_thread.run_sync(catalog.read)).building
        is_from_files = bool(wanted.origin or (building and building.origin))
        if not is_from_files and not await origin.count():
            raise BadRequest(no_documents(origin.settings))
        generation = await anyio.to_thread.run_sync(begin, settings, wanted, options.resume, is_shard, origin)
        _say(f"building {generation.name}", options.run_id)
        if generation.state == "building":
            async with open_other(settings, generation) as target:
                read_from = _origin(generation.origin, origin, target)
                work = Backfill(catalog, generation, read_from, origin.stores, target.stores)
                if not await _write(work, target, options):
                    return ""
    # Opened again: another generation may have become live meanwhile.
    async with open_live(settings) as live, open_other(settings, generation) as target:
        switching = switch_to(live, target, generation)
        with switching.alone():
            await verified(live, target, switching, options.min_overlap)
            if options.switch:
                await switching.run()
                out.print(f"{generation.name} is live", highlight=False)
    return generation.name


async def _write(work: Backfill, target: Service, options: _Options) -> bool:
    """Encode, and write if everything is encoded. Returns whether everything is written."""
    shards = (
        [options.shard] if options.shard else [Shard(n, work.generation.shards) for n in range(work.generation.shards)]
    )
    total = await work.origin.total() // work.generation.shards
    for shard in shards:
        with work.working(f"shard-{shard.number}") as is_alone:
            if not is_alone:
                raise BadRequest(f"another process encodes shard {shard.number} of {shard.shards}, from 0")
            label = "encoding" if err.is_terminal else f"run {options.run_id}: encoding"
            with progress_bar(err, label, "documents", total) as advance:
                await work.encode(shard, advance)
    with ExitStack() as stack:
        # Waits for another process that has ended its shard: which of them is the last one is known only afterwards.
        await anyio.to_thread.run_sync(stack.enter_context, work.writing())
        progress = await anyio.to_thread.run_sync(work.progress)
        missing = [str(number) for number, each in enumerate(progress) if each.next]
        is_written: bool = await anyio.to_thread.run_sync(work.is_written)
        if missing or is_written:
            what = f"not encoded yet: shard {', '.join(missing)}" if missing else "another process has written all"
            _say(f"{what} of {work.generation.name}", options.run_id)
            return False
        rejected = await work.assemble()
        await optimize(target)
        await anyio.to_thread.run_sync(work.complete)
    documents = sum(each.documents for each in progress)
    _say(f"{documents:,} documents read, {rejected} rejected; {await target.count():,} written", options.run_id)
    if rejected:
        _say(f"the rejected ones are in {work.rejected_path}", options.run_id)
    return True


def _say(message: str, run_id: str) -> None:
    """A line on the terminal, or in the log, which adds the run."""
    if err.is_terminal:
        err.print(f"run {run_id}: {message}", highlight=False, soft_wrap=True)
    else:
        _log.info("%s", message)
