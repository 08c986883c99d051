"""Progress on a terminal, or in the log of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column as TableColumn
from rich.text import Text

Advance: TypeAlias = Callable[[int], None]
"""Called with the number of items that were done since the last call."""

_MINUTE_S, _HOUR_S = 60, 3_600
_LOG_S = 10.0
_BAR_CHARS = 16
"""The rest of 80 columns is for figures."""


@contextmanager
def progress_bar(console: Console, work: str, items: str, total: int | None) -> Iterator[Advance]:
    """A bar with the number of items, their rate and the remaining time; without a terminal a line each ten seconds.

    :param total: ``None`` if it is not known: then the time since the beginning is shown.
    """
    columns = (TextColumn(work), BarColumn(bar_width=_BAR_CHARS), _Items(items))
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(work, total=total)
        logged_at = monotonic()

        def advance(count: int) -> None:
            nonlocal logged_at
            progress.advance(task, count)
            if progress.disable and monotonic() - logged_at >= _LOG_S:
                logged_at = monotonic()
                console.print(f"{work}: {columns[-1].render(progress.tasks[0])}", highlight=False, soft_wrap=True)

        yield advance


@contextmanager
def progress_steps(console: Console, work: str) -> Iterator[Callable[[str], None]]:
    """A spinner with the current step and the time; call the function with the name of each step as it begins."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(work, total=None)
        yield lambda step: progress.update(task, description=f"{work}: {step}")


def duration(seconds: float) -> str:
    """A time in words: ``3.2 s``, ``2 min 5 s``, ``1 h 3 min``."""
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < _HOUR_S:
        return f"{int(seconds // _MINUTE_S)} min {int(seconds % _MINUTE_S)} s"
    return f"{int(seconds // _HOUR_S)} h {int(seconds % _HOUR_S // _MINUTE_S)} min"


class _Items(ProgressColumn):
    """``256 of 3,204 documents, 12 a second, 3 min 10 s left``."""

    def __init__(self, items: str) -> None:
        super().__init__(table_column=TableColumn(no_wrap=True))
        self._items = items

    def render(self, task: Task) -> Text:
        parts = [f"{task.completed:,.0f}{'' if task.total is None else f' of {task.total:,.0f}'} {self._items}"]
        if task.speed:
            parts.append(f"{task.speed:,.{0 if task.speed >= 10 else 1}f} a second")
        if task.total is None:
            parts.append(duration(task.elapsed or 0))
        elif task.time_remaining is not None:
            parts.append(f"{duration(task.time_remaining)} left")
        return Text(", ".join(parts))
