"""One line a claim: whether it held, and what was measured."""

from __future__ import annotations

from rich.console import Console

out = Console()


def say(holds: bool, claim: str, measured: str) -> bool:
    """Print it; whether it held."""
    mark = "[green]held [/green]" if holds else "[red]broke[/red]"
    out.print(f"{mark} {claim}: {measured}", soft_wrap=True, highlight=False)
    return holds
