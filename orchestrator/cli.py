"""The command line. Exit codes: 0 done, 1 not well or partly done, 2 wrong use."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, TypeVar

import anyio
import msgspec
import typer
from rich.markup import escape

from adapters import AdapterError, Document
from orchestrator import key_commands, keys
from orchestrator import settings as settings_
from orchestrator.contract import SearchRequest, SearchResponse
from orchestrator.doctor import examine
from orchestrator.evaluation import commands
from orchestrator.indexing import beir, lines
from orchestrator.indexing.writer import Progress
from orchestrator.progress import bar, steps
from orchestrator.serving import ensure_free, serve_http
from orchestrator.settings import Settings
from orchestrator.show import explain as show_explanation
from orchestrator.show import show
from orchestrator.terminal import err, out, told
from orchestrator.wiring import Service, opened

main = typer.Typer(
    help="Search over vectors, a knowledge graph and keywords at once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

_SHOWN_ERRORS = 20
_PATIENCE_MS = 10_000
"""A person at a terminal waits for a cold start rather than for half an answer."""

T = TypeVar("T")
Port = Annotated[int, typer.Option(min=1, max=65_535)]


def _patient(chosen: Settings) -> Settings:
    return chosen.model_copy(update={"source_timeout_ms": _PATIENCE_MS})


async def _tidy(service: Service) -> None:
    with steps(err, "tidying") as step:
        await service.tidy(step)


def _with_service(chosen: Settings, work: Callable[[Service], Awaitable[T]]) -> T:
    """Do something with the service, opened and closed on one event loop."""

    async def run() -> T:
        async with opened(chosen) as service:
            return await work(service)

    return anyio.run(run)


@main.command()
def demo(
    port: Port = 8080,
    serve: Annotated[bool, typer.Option(help="serve the API afterwards")] = True,
) -> None:
    """Index the documentation of this Python, answer three questions, serve the API."""
    from orchestrator.demo import run  # noqa: PLC0415  # reads the language reference when it is imported

    with told():
        if serve:
            ensure_free("127.0.0.1", port)  # before the minute of work, not after it

        async def show_it(service: Service) -> None:
            await run.prepare(service, out)
            await run.answer(service, out)
            await _tidy(service)

        _with_service(_patient(settings_.read()), show_it)
        if serve:
            out.print(f"serving on http://127.0.0.1:{port}, stop with Ctrl-C; for example:")
            out.print(run.example(port), soft_wrap=True, highlight=False, markup=False)
            serve_http("127.0.0.1", port, workers=1)


@main.command()
def serve(
    host: Annotated[str, typer.Option(help="a loopback address, unless there are keys")] = "127.0.0.1",
    port: Port = 8080,
    workers: Annotated[int, typer.Option(min=1, max=256, help="processes")] = 1,
    settings: Annotated[
        Path | None, typer.Option(help="a file of settings, as `trivium tune` writes it; the environment comes first")
    ] = None,
) -> None:
    """Serve the API."""
    if settings:
        os.environ[settings_.FILE] = str(settings)  # for the workers, too
    with told():
        chosen = settings_.read()  # says what is wrong here, and not once in every worker
        if chosen.keys_file:
            keys.read(chosen.keys_file)
        serve_http(host, port, workers)


@main.command()
def index(
    path: Annotated[str, typer.Argument(help="an NDJSON file, - for standard input, or a BEIR folder")],
    as_json: Annotated[bool, typer.Option("--json", help="print the outcome as JSON")] = False,
) -> None:
    """Add documents, replacing those of the same id. Lines that are wrong are named, the others are kept."""
    refusals = _Refusals()
    with told():
        chosen = _patient(settings_.read())
        with _documents(path, chosen, refusals) as (documents, total):

            async def take(service: Service) -> tuple[Progress, int | None]:
                with bar(err, "encoding", "documents", total) as advance:
                    done = await service.writer.index(documents, service.caller.scope, advance)
                try:
                    await _tidy(service)
                    return done, await service.count()
                except AdapterError as error:  # what was taken is on disk all the same
                    err.print(f"[red]trivium: {escape(str(error))}[/red]", soft_wrap=True)
                    return done, None

            done, held = _with_service(chosen, take)
    if as_json:
        report: dict[str, object] = {
            "indexed": done.indexed,
            "rejected": refusals.count,
            "documents": held,
            "errors": refusals.first,
        }
        if done.missing or done.refused:
            report |= {"missing": done.missing, "refused": {key[-1]: why for key, why in done.refused.items()}}
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        refusals.tell()
        for store, reason in done.missing.items():
            err.print(f"[red]{escape(store)} does not hold all of it yet: {escape(reason)}[/red]", soft_wrap=True)
        for (*_, id_), reasons in done.refused.items():
            err.print(f"[red]{escape(f'{id_}: {reasons}')}[/red]", soft_wrap=True)
        holds = "" if held is None else f"; the index holds {held} documents"
        out.print(f"{done.indexed} indexed, {refusals.count} rejected{holds}")
    whole = held is not None and not (refusals.count or done.missing or done.refused)
    raise typer.Exit(0 if whole else 1)


@main.command()
def search(
    query: str,
    *,
    mode: Annotated[str, typer.Option(help="auto, hybrid, vector, graph or keyword")] = "auto",
    limit: Annotated[int, typer.Option(help="1 to 50")] = 10,
    collection: Annotated[list[str] | None, typer.Option(help="search this one; may be given again")] = None,
    collapse: Annotated[str, typer.Option(help="one hit for each parent or window: parent, window or none")] = "parent",
    neighbors: Annotated[int, typer.Option(help="chunks around each hit, 0 to 10")] = 0,
    rerank: Annotated[bool, typer.Option("--rerank", help="let the reranker order the best hits")] = False,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the answer to go on from")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="show how each score came about")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the answer as the API gives it")] = False,
) -> None:
    """Search."""
    with told():
        asked: dict[str, object] = {
            "query": query,
            "mode": mode,
            "limit": limit,
            "collapse": collapse,
            "neighbors": neighbors,
            "rerank": rerank,
            "cursor": cursor,
            "explain": explain,
            "timeout_ms": _PATIENCE_MS,
        }
        if collection:
            asked["collections"] = collection
        request = msgspec.convert(asked, SearchRequest)

        async def ask(service: Service) -> SearchResponse:
            return await service.engine.search(request, service.caller, "cli")

        answer = _with_service(_patient(settings_.read()), ask)
    if as_json:
        sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
        return
    show(out, query, answer)
    show_explanation(out, answer)


@main.command()
def tidy() -> None:
    """Merge segments, compute centralities, fit the query table: for after many writes over HTTP."""
    with told():
        _with_service(_patient(settings_.read()), _tidy)


@main.command()
def doctor() -> None:
    """Look at everything that the settings name, and say what to do about what is not well."""
    with told():
        findings = anyio.run(examine, _patient(settings_.read()))
    for finding in findings:
        mark = "[green]ok[/green]  " if finding.well else "[red]fail[/red]"
        advice = f" -> {finding.advice}" if finding.advice else ""
        out.print(f"{mark} {finding.part}: {escape(finding.saw + advice)}", soft_wrap=True)
    raise typer.Exit(0 if all(finding.well for finding in findings) else 1)


main.command()(commands.evaluate)
main.command()(commands.tune)
main.add_typer(key_commands.main, name="keys")


class _Refusals:
    """The lines that were refused: how many, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[lines.Bad] = []

    def add(self, bad: lines.Bad) -> None:
        self.count += 1
        if len(self.first) < _SHOWN_ERRORS:
            self.first.append(bad)

    def tell(self) -> None:
        for bad in self.first:
            err.print(f"[red]line {bad.line}: {escape(bad.error)}[/red]", soft_wrap=True)
        if self.count > len(self.first):
            err.print(f"[red]and {self.count - len(self.first)} more[/red]")


@contextmanager
def _documents(path: str, chosen: Settings, refusals: _Refusals) -> Iterator[tuple[Iterable[Document], int | None]]:
    """The documents of whatever ``path`` is, and how many lines there are, where that can be known."""
    place = Path(path)
    if path != "-" and beir.is_folder(place):
        with (place / "corpus.jsonl").open("rb") as corpus:
            total = sum(1 for _ in corpus)
        yield lines.good(beir.read(place), refusals.add), total
        return
    if path != "-" and place.is_dir():
        raise IsADirectoryError(f"{path} is a folder without corpus.jsonl, so it is no BEIR data set")
    with nullcontext(sys.stdin.buffer) if path == "-" else place.open("rb") as file:
        yield lines.good(lines.read(file, chosen.max_document_bytes), refusals.add), None
