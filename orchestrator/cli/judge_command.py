"""``trivium judge``: judgments of one's own queries, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import anyio.to_thread
import typer
from rich.markup import escape

from orchestrator.cli.judged_sets import evaluation_command, open_for_evaluation
from orchestrator.cli.progress import progress_bar
from orchestrator.cli.remote import remote_client
from orchestrator.cli.scope_options import Environment, Tenant, require_one_caller, searcher
from orchestrator.cli.terminal import err, for_reading, out, printable, with_cli_timeout
from orchestrator.evaluation.judged_folder import JudgedFolder
from orchestrator.evaluation.judgments import BadDataset, read_lines, read_queries
from orchestrator.evaluation.pooling import MAX_DEPTH, PooledDocument, Search, pool
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.search import SearchRequest, SearchResponse
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import load

_TIMEOUT_MS = 60_000
_LATER, _END = "l", "e"
_ANSWERS = {"0": 0, "1": 1, "2": 2}
_QUESTION = "0 no, 1 in part, 2 yes; l later, e end"

Pools = Mapping[str, Sequence[PooledDocument]]
"""The documents to judge, by query."""


def judge(
    queries: Annotated[Path, typer.Argument(help="a text file with a query on each line, or queries.jsonl")],
    output: Annotated[
        Path, typer.Option(help="the folder of queries.jsonl and qrels.tsv, to which judgments are added")
    ] = Path("judged"),
    depth: Annotated[int, typer.Option(min=1, max=MAX_DEPTH, help="how many documents of each source are judged")] = 5,
    *,
    tenant: Tenant = None,
    environment: Environment = None,
    key: Annotated[str | None, typer.Option(help="search as the caller with this API key")] = None,
    url: Annotated[str | None, typer.Option(help="search at a running service, such as http://127.0.0.1:8080")] = None,
) -> None:
    """Judge what each source finds for one's own queries, without seeing which found it."""
    with evaluation_command():
        require_one_caller(tenant, environment, key, url)
        texts = query_texts(queries)
        folder = JudgedFolder(output, texts)
        if url:
            place, pools = url, _remote_pools(list(texts), depth, url, key)
        else:
            settings = load()
            place = f"the index in {settings.storage.data_dir}"
            pools = _own_pools(settings, list(texts), depth, (tenant, environment, key))
        if not any(pools.values()):
            raise BadDataset(f"{place} has no document for any of the queries")
        for query, document, relevance in _answers(folder, pools):
            folder.add(query, document, relevance)
        totals = f"judgments in {output}: {folder.count}; queries that have any: {folder.judged_queries}"
        err.print(escape(totals), soft_wrap=True, highlight=False)
        if folder.count:
            files = f"--queries {folder.queries_file} --qrels {folder.judgments_file}"
            err.print(f"[dim]trivium evaluate {escape(files)} measures every source on them[/dim]", soft_wrap=True)


def query_texts(path: Path) -> dict[str, str]:
    """The distinct queries of a file, and their ids as far as it has any."""
    texts: dict[str, str] = {}
    if path.suffix == ".jsonl":
        for number, query in read_queries(path):
            if not query.text.strip():
                raise BadDataset(f"{path}, line {number}: the query {query.id!r} has no text")
            texts.setdefault(query.text, query.id)
    else:
        texts = {line.strip(): "" for _, line in read_lines(path)}
    if not texts:
        raise BadDataset(f"{path} has no queries: write one on each line")
    return texts


def _answers(folder: JudgedFolder, pools: Pools) -> Iterator[tuple[str, str, int]]:
    """Ask about each document that is not judged yet, until the user ends it."""
    for number, (query, documents) in enumerate(pools.items(), start=1):
        unjudged = [each for each in documents if each.id not in folder.judged(query)]
        for position, document in enumerate(unjudged, start=1):
            title = escape(printable(document.title or document.id))
            place = escape(printable(f"{document.id} in {' and '.join(document.collections)}"))
            out.print(
                f"\n[bold]{escape(printable(query))}[/bold] "
                f"[dim](query {number} of {len(pools)}, document {position} of {len(unjudged)})[/dim]\n"
                f"[bold]{title}[/bold] [dim]{place}[/dim]\n"
                f"{escape(printable(document.passage))}",
                highlight=False,
            )
            answer = _ask()
            if answer == _END:
                return
            if answer != _LATER:
                yield query, document.id, _ANSWERS[answer]


def _ask() -> str:
    """An answer; at the end of the input, that the user ends it."""
    while True:
        try:
            answer = str(typer.prompt(f"Does it answer the query? ({_QUESTION})", prompt_suffix=": ")).strip().lower()
        except typer.Abort:
            out.print()
            return _END
        if answer in {*_ANSWERS, _LATER, _END}:
            return answer
        err.print(f"{escape(repr(answer[:20]))} is no answer; allowed are {_QUESTION}", highlight=False)


def _own_pools(
    settings: Settings, texts: Sequence[str], depth: int, caller: tuple[str | None, str | None, str | None]
) -> Pools:
    """Search the documents of the data folder, or of the servers that the settings name.

    :param caller: tenant, environment and key.
    """

    async def search_all() -> Pools:
        async with open_for_evaluation(chosen) as service:
            principal = searcher(service, *caller)

            async def search(fields: Mapping[str, object]) -> SearchResponse:
                request = SearchRequest(**fields, timeout_ms=_TIMEOUT_MS)  # type: ignore[arg-type]
                return await service.search.search(request, principal, "judge")

            return await _pools(search, texts, depth)

    deeper = settings.changed(max_limit=max(settings.requests.max_limit, depth))
    with for_reading(with_cli_timeout(deeper)) as chosen:
        return anyio.run(search_all)


def _remote_pools(texts: Sequence[str], depth: int, url: str, key: str | None) -> Pools:
    """Search at a running service."""
    with remote_client(url, key, _TIMEOUT_MS / 1_000) as client:
        from orchestrator.client import Refused  # noqa: PLC0415  # it needs the packages of the client

        async def search(fields: Mapping[str, object]) -> SearchResponse:
            try:
                return await anyio.to_thread.run_sync(partial(client.search, **fields))  # type: ignore[arg-type]
            except Refused as error:
                raise BadRequest(str(error)) from error

        return anyio.run(_pools, search, texts, depth)


async def _pools(search: Search, texts: Sequence[str], depth: int) -> Pools:
    pools = {}
    with progress_bar(err, "searching", "queries", len(texts)) as advance:
        for text in texts:
            try:
                pools[text] = await pool(search, text, depth)
            except BadRequest as error:
                raise BadRequest(f"--depth {depth}, query {text[:80]!r}: {error}") from error
            advance(1)
    return pools
