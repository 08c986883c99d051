"""Progress on a terminal, for a person who watches; silence where nobody does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn


@contextmanager
def bar(console: Console, work: str, things: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar over things that are worked through; call what it gives with how many more are done."""
    columns = (
        TextColumn(work),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{things},"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(work, total=total)
        yield lambda count: progress.advance(task, count)


@contextmanager
def steps(console: Console, work: str) -> Iterator[Callable[[str], None]]:
    """A spinner beside the step that is under way; call what it gives as each step begins."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(work, total=None)
        yield lambda step: progress.update(task, description=f"{work}: {step}")
