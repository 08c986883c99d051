"""``trivium leftovers``: what evaluations and repairs leave in the data folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Annotated, NamedTuple

import anyio
import typer
from rich.filesize import decimal

from adapters.storage import files
from orchestrator.bootstrap.embedded import replaced_indexes
from orchestrator.bootstrap.generations import live_settings
from orchestrator.cli.judged_sets import open_for_evaluation
from orchestrator.cli.progress import duration
from orchestrator.cli.tables import Column, print_table
from orchestrator.cli.terminal import err, out, reported_errors
from orchestrator.evaluation.workspace import evaluations_folder, remove_workspace
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import load


class _Leftover(NamedTuple):
    path: Path
    meaning: str
    is_evaluation: bool = False


def leftovers(
    *, remove: Annotated[bool, typer.Option("--remove", help="delete them; not while an evaluation runs")] = False
) -> None:
    """List what evaluations and repairs left in the data folder, and how much space it takes."""
    start = monotonic()
    with reported_errors():
        settings = load()
        found = list(_leftovers(settings))
        sizes = {each.path: files.size_bytes(each.path) for each in found}
        rows = [
            (str(each.path.relative_to(settings.storage.data_dir)), decimal(sizes[each.path]), each.meaning)
            for each in found
        ]
        if rows:
            columns = [Column("leftover", is_text=True), Column("size"), Column("what it is", is_text=True)]
            print_table(out, columns, rows)
        total = decimal(sum(sizes.values()))
        if not remove:
            advice = "; --remove deletes them" if found else ""
            out.print(f"{len(found)} leftovers in {settings.storage.data_dir}, {total}{advice}", highlight=False)
            return
        for each in found:
            if each.is_evaluation:
                anyio.run(remove_workspace, each.path, settings, open_for_evaluation)
            else:
                shutil.rmtree(each.path)
        out.print(f"{len(found)} leftovers removed, {total}", highlight=False)
        err.print(f"took {duration(monotonic() - start)}", highlight=False)


def _leftovers(settings: Settings) -> Iterator[_Leftover]:
    meaning = "an evaluation: its index and results, which the next one of the same data set uses"
    for path in sorted(evaluations_folder(settings).glob("*-*")):
        yield _Leftover(path, meaning, is_evaluation=True)
    for path in replaced_indexes(live_settings(settings)):
        yield _Leftover(path, "an index that `trivium rebuild` or `trivium fill` replaced")
