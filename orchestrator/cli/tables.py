"""Responses on a terminal: a table with the rank of each hit in each source."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from orchestrator.schema.search import SearchHit, SearchResponse

_SNIPPET_CHARS = 88


def print_response(console: Console, query: str, response: SearchResponse, sources: Sequence[str]) -> None:
    """Print the hits, the route, and what failed.

    :param sources: names of all sources: the columns.
    """
    table = Table(title=f"[bold]{escape(_printable(query))}[/bold]", title_justify="left", expand=True)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("document", ratio=1, overflow="ellipsis")
    table.add_column("score", justify="right", no_wrap=True)
    for source in sources:
        table.add_column(source, justify="right", no_wrap=True)
    for position, hit in enumerate(response.hits, start=1):
        table.add_row(str(position), _document(hit), f"{hit.score:.3f}", *(_rank(hit, source) for source in sources))
    console.print(table)
    console.print(
        f"[dim]columns of sources: rank of the document · {escape(response.route.reason)} · "
        f"{response.took_ms:.1f} ms[/dim]"
    )
    for each in response.degraded:
        console.print(f"[yellow]degraded: {escape(each.source)} ({escape(each.reason)})[/yellow]")
    if not response.hits:
        console.print("[yellow]nothing found[/yellow]")
    if response.next_cursor:
        console.print(f"[dim]more: --cursor {response.next_cursor}[/dim]", soft_wrap=True)


def print_explanation(console: Console, response: SearchResponse) -> None:
    """Print how the score of each hit was computed."""
    if not response.explain:
        return
    explanation = response.explain
    console.print(
        f"[dim]profile {explanation.profile}, {explanation.fusion}; {explanation.depth} documents requested from each "
        f"source; query encoded by: {explanation.encoder}[/dim]"
    )
    if explanation.expansions:
        synonyms = escape(_printable(", ".join(explanation.expansions)))
        console.print(f"[dim]synonyms added to the keyword query: {synonyms}[/dim]")
    removed = explanation.removed
    console.print(
        f"[dim]removed: {removed.filter} documents by filter and collections, {removed.min_score} by min_score, "
        f"{removed.min_confidence} by min_confidence, {len(removed.collapsed)} replaced by a better chunk, "
        f"{removed.deleted} deleted meanwhile, {removed.withheld} withheld by the access check[/dim]",
        soft_wrap=True,
    )
    for position, hit in enumerate(response.hits, start=1):
        contributions = [
            f"{source} {each.contribution:.4f} (rank {each.rank}, score {each.score:.4f}, weight {each.weight:g})"
            for source, each in hit.sources.items()
            if each is not None
        ]
        console.print(
            f"{position:>3}. {escape(_printable(hit.id))}: fusion_score {hit.fusion_score:.4f} "
            f"<- {' + '.join(contributions)}"
        )
        if applied := {name: factor for name, factor in hit.boosts.items() if factor != 1.0}:
            factors = " * ".join(f"{name} {factor:.3f}" for name, factor in applied.items())
            console.print(f"     score {hit.score:.4f} = fusion_score * {factors}")
    console.print(f"[dim]stages, ms: {', '.join(f'{k} {v:.2f}' for k, v in response.timings_ms.items())}[/dim]")


def _document(hit: SearchHit) -> Text:
    snippet = _printable(" ".join(hit.text.split()))[:_SNIPPET_CHARS]
    title, id_ = _printable(hit.title), _printable(hit.id)
    return Text.assemble((title or id_, "bold"), f"  [{id_}]" if title not in {"", id_} else "", f"\n{snippet}")


def _printable(text: str) -> str:
    """The text without control characters, because a terminal executes some of them."""
    return "".join(each for each in text if each.isprintable())


def _rank(hit: SearchHit, source: str) -> str:
    contribution = hit.sources.get(source)
    return "-" if contribution is None else str(contribution.rank)
