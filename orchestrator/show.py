"""Answers on a terminal: a table that shows which source found each hit, and where."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from orchestrator.contract import SOURCES, SearchHit, SearchResponse

_SNIPPET = 88


def show(console: Console, query: str, answer: SearchResponse) -> None:
    """The hits, then what the answer says of itself."""
    table = Table(title=f"[bold]{escape(_printable(query))}[/bold]", title_justify="left", expand=True)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("document", ratio=1, overflow="ellipsis")
    table.add_column("score", justify="right", no_wrap=True)
    for source in SOURCES:
        table.add_column(source, justify="right", no_wrap=True)
    for place, hit in enumerate(answer.hits, start=1):
        table.add_row(str(place), _document(hit), f"{hit.score:.3f}", *(_rank(hit, source) for source in SOURCES))
    console.print(table)
    console.print(
        f"[dim]a source's column: its rank of the document · {escape(answer.route.reason)} · "
        f"{answer.took_ms:.1f} ms[/dim]"
    )
    for each in answer.degraded:
        console.print(f"[yellow]degraded: {escape(each.source)} ({escape(each.reason)})[/yellow]")
    if not answer.hits:
        console.print("[yellow]nothing found[/yellow]")
    if answer.next_cursor:
        console.print(f"[dim]more: --cursor {answer.next_cursor}[/dim]", soft_wrap=True)


def explain(console: Console, answer: SearchResponse) -> None:
    """How the score of each hit came about."""
    if not answer.explain:
        return
    made = answer.explain
    console.print(f"[dim]{made.fusion}; {made.depth} hits asked of each source; query encoded by: {made.encoder}[/dim]")
    if made.expansions:
        console.print(f"[dim]keyword was asked for these, too: {escape(_printable(', '.join(made.expansions)))}[/dim]")
    if made.removed.collapsed:
        console.print(f"[dim]{len(made.removed.collapsed)} documents gave way to a better chunk of theirs[/dim]")
    for place, hit in enumerate(answer.hits, start=1):
        parts = [
            f"{source} {share.contribution:.4f} (rank {share.rank}, score {share.score:.4f}, weight {share.weight:g})"
            for source, share in hit.sources.items()
            if share is not None
        ]
        console.print(
            f"{place:>3}. {escape(_printable(hit.id))}: fusion_score {hit.fusion_score:.4f} <- {' + '.join(parts)}"
        )
        if swayed := {name: factor for name, factor in hit.boosts.items() if factor != 1.0}:
            factors = " * ".join(f"{name} {factor:.3f}" for name, factor in swayed.items())
            console.print(f"     score {hit.score:.4f} = fusion_score * {factors}")
    console.print(f"[dim]stages, ms: {', '.join(f'{k} {v:.2f}' for k, v in answer.timings_ms.items())}[/dim]")


def _document(hit: SearchHit) -> Text:
    snippet = _printable(" ".join(hit.text.split()))[:_SNIPPET]
    title, id_ = _printable(hit.title), _printable(hit.id)
    return Text.assemble((title or id_, "bold"), f"  [{id_}]" if title not in {"", id_} else "", f"\n{snippet}")


def _printable(text: str) -> str:
    """Without what a terminal would obey: documents come from anywhere."""
    return "".join(each for each in text if each.isprintable())


def _rank(hit: SearchHit, source: str) -> str:
    share = hit.sources.get(source)
    return "-" if share is None else str(share.rank)
