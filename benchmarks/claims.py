"""One line for each claim: whether it is true, and what was measured."""

from __future__ import annotations

from rich.console import Console

out = Console(width=160)


def report(is_true: bool, claim: str, measured: str) -> bool:
    """Print a claim, and return ``is_true``."""
    mark = "[green]ok    [/green]" if is_true else "[red]failed[/red]"
    out.print(f"{mark} {claim}: {measured}", soft_wrap=True, highlight=False)
    return is_true
