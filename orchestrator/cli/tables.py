"""Tables that fit the width of the terminal: no figure is ever cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_BORDER = 3
"""Characters beside each column: its padding and a border."""
_MIN_TEXT = 16
"""Characters that a column with wrapped texts gets at least."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures, or of texts that may take several lines."""

    name: str
    is_text: bool = False


def print_table(console: Console, columns: Sequence[Column], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table; if it is too wide, several under each other, each with the first column.

    :param rows: plain texts, without markup.
    :param title: with markup.
    """
    widths = [_width(column, [row[index] for row in rows]) for index, column in enumerate(columns)]
    for number, chosen in enumerate(_groups(widths, console.width)):
        table = Table(title=title if not number else None, title_justify="left")
        for index in chosen:
            is_text = columns[index].is_text
            table.add_column(
                columns[index].name,
                justify="left" if is_text or not index else "right",
                no_wrap=not is_text,
                overflow="fold",
            )
        for row in rows:
            table.add_row(*(escape(row[index]) for index in chosen))
        console.print(table)


def _width(column: Column, values: Sequence[str]) -> int:
    longest = max(map(len, values), default=0)
    return _BORDER + (
        max(len(column.name), min(longest, _MIN_TEXT)) if column.is_text else max(len(column.name), longest)
    )


def _groups(widths: Sequence[int], available: int) -> list[list[int]]:
    """The columns of each table: the first one, and as many others as fit beside it."""
    groups: list[list[int]] = [[0]]
    used = widths[0] + 1
    for index, width in enumerate(widths[1:], start=1):
        if used + width > available and len(groups[-1]) > 1:
            groups.append([0])
            used = widths[0] + 1
        groups[-1].append(index)
        used += width
    return groups
