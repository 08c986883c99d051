"""Responses on a terminal: a table with the rank of each hit in each source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from html import escape as escape_html
from html import unescape

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from adapters.model.term_score import TermScore
from orchestrator.cli.terminal import no_documents, printable
from orchestrator.schema.explain import Explanation
from orchestrator.schema.hits import SearchHit
from orchestrator.schema.search import SearchResponse
from orchestrator.settings.groups import Settings

_SNIPPET_CHARS = 120
_BEFORE_MARK = 40
"""Characters of a snippet before the first word of the query."""
_MARK = re.compile(r"<mark>(.*?)</mark>", re.DOTALL)
_NARROW = 64
"""Below this width of the terminal there are no columns for the sources."""


def print_response(console: Console, query: str, response: SearchResponse, is_paging: bool = False) -> None:
    """Print the hits, the route, and what failed.

    :param query: the title; empty for none.
    :param is_paging: whether to print how to get the next page.
    """
    sources = list(response.hits[0].sources) if response.hits and console.width >= _NARROW else []
    title = f"[bold]{escape(printable(query))}[/bold]" if query else None
    table = Table(title=title, title_justify="left", expand=True)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("document", ratio=1, overflow="fold")
    table.add_column("score", justify="right", no_wrap=True)
    for source in sources:
        table.add_column(source, justify="right", no_wrap=True)
    for position, hit in enumerate(response.hits, start=1):
        table.add_row(str(position), _document(hit), f"{hit.score:.3f}", *(_rank(hit, source) for source in sources))
    if response.hits:
        console.print(table)
    legend = "columns of sources: rank of the document · " if sources else ""
    confidence = "" if response.confidence is None else f" · confidence {response.confidence:.2f}"
    console.print(f"[dim]{legend}{escape(response.route.reason)}{confidence} · {response.took_ms:.1f} ms[/dim]")
    for each in response.degraded:
        console.print(f"[yellow]degraded: {escape(each.source)} ({escape(each.reason)})[/yellow]")
    for warning in response.warnings:
        console.print(f"[yellow]{escape(printable(warning))}[/yellow]")
    if not response.hits:
        console.print("[yellow]nothing found[/yellow]")
    if response.next_cursor:
        shown, bound = len(response.hits), "at least " if response.total.relation == "gte" else ""
        more = f"--cursor {response.next_cursor}" if is_paging else "--limit shows more"
        console.print(f"[dim]{shown} of {bound}{response.total.value}: {more}[/dim]", soft_wrap=True)


def print_facets(console: Console, response: SearchResponse) -> None:
    """Print how many documents have each value of the fields that were counted."""
    for name, facet in (response.facets or {}).items():
        counts = [f"{_value(each.value)} {each.count}" for each in facet.values]
        counts += [f"{_value(each.gte)} to {_value(each.lt)} {each.count}" for each in facet.ranges]
        counts += [f"others {facet.others}"] if facet.others else []
        console.print(
            f"{printable(name)}: {' · '.join(counts) or 'no values'}", markup=False, highlight=False, soft_wrap=True
        )


def _value(value: bool | float | str | datetime | None) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return printable(value)
        case None:
            return "the last"
        case datetime():
            return value.isoformat().removesuffix("T00:00:00+00:00")
        case _:
            return f"{value:g}"


def print_empty_index(console: Console, settings: Settings) -> None:
    """Print that there is nothing to search, and what to do."""
    console.print(f"[yellow]{escape(no_documents(settings))}[/yellow]", soft_wrap=True)


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
        synonyms = escape(printable(", ".join(explanation.expansions)))
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
        if not contributions:  # it is listed, not ranked
            continue
        console.print(
            f"{position:>3}. {escape(printable(hit.id))}: fusion_score {hit.fusion_score:.4f} "
            f"<- {' + '.join(contributions)}"
        )
        for terms in _terms(explanation, hit):
            console.print(f"     {terms}", style="dim", markup=False, highlight=False, soft_wrap=True)
        if applied := {name: factor for name, factor in hit.boosts.items() if factor != 1.0}:
            factors = " * ".join(f"{name} {factor:.3f}" for name, factor in applied.items())
            console.print(f"     score {hit.score:.4f} = fusion_score * {factors}")
    console.print(f"[dim]stages, ms: {', '.join(f'{k} {v:.2f}' for k, v in response.timings_ms.items())}[/dim]")


def _terms(explanation: Explanation, hit: SearchHit) -> Iterator[str]:
    """The terms of the query in a hit, a line for each source that ranks by terms."""
    for source, ranking in explanation.rankings.items():
        for each in ranking:
            if each.terms and (each.id, each.collection) == (hit.id, hit.collection):
                yield f"{source}: {printable(' + '.join(map(_term, each.terms)))}"


def _term(term: TermScore) -> str:
    """The score of a term, and from what: ``fox 1.23 (idf 0.98, tf 0.57)``."""
    shown = f'"{term.term}"' if term.exact else term.term
    return f"{shown} {term.score:.4f} (idf {term.idf:.2f}, tf {term.tf:.2f})"


def _document(hit: SearchHit) -> Text:
    title, id_ = printable(hit.title), printable(hit.id)
    text = Text.assemble((title or id_, "bold"), f"  [{id_}]" if title not in {"", id_} else "", "\n")
    return text.append_text(_snippet(hit.snippet or escape_html(hit.text)))


def _snippet(html: str) -> Text:
    """A snippet with the words of the query in bold, cut at words."""
    pieces = [(printable(unescape(piece)), number % 2 == 1) for number, piece in enumerate(_MARK.split(html))]
    before = pieces[0][0]
    if len(pieces) > 1 and len(before) > _BEFORE_MARK:
        cut = before.find(" ", len(before) - _BEFORE_MARK)
        pieces[0] = (f"…{before[cut + 1 :]}" if cut >= 0 else before, False)
    text = Text()
    for piece, is_marked in pieces:
        text.append(piece, "bold yellow" if is_marked else "dim")
    if len(text) > _SNIPPET_CHARS:
        end = text.plain.rfind(" ", 0, _SNIPPET_CHARS)
        text.truncate(end if end > 0 else _SNIPPET_CHARS)
        text.append("…", "dim")
    return text


def _rank(hit: SearchHit, source: str) -> str:
    contribution = hit.sources.get(source)
    return "-" if contribution is None else str(contribution.rank)
