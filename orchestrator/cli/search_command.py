"""``trivium search``."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
import typer

from orchestrator.cli.tables import print_explanation, print_response
from orchestrator.cli.terminal import CLI_TIMEOUT_MS, out, reported_errors, with_cli_timeout, with_service
from orchestrator.schema.search import SearchResponse
from orchestrator.schema.search_input import search_request
from orchestrator.service.service import Service
from orchestrator.settings.loading import load


def search(
    query: str,
    *,
    mode: Annotated[str, typer.Option(help="auto, hybrid, or the name of a source")] = "auto",
    limit: Annotated[int, typer.Option(help="1 to TRIVIUM_MAX_LIMIT")] = 10,
    collection: Annotated[list[str] | None, typer.Option(help="a collection to search; may be repeated")] = None,
    profile: Annotated[str | None, typer.Option(help="joint or rrf; TRIVIUM_PROFILE by default")] = None,
    collapse: Annotated[
        str | None, typer.Option(help="one hit for each parent or window: parent, window or none")
    ] = None,
    neighbors: Annotated[int, typer.Option(help="chunks around each hit, 0 to 10")] = 0,
    rerank: Annotated[
        bool | None, typer.Option("--rerank/--no-rerank", help="whether the reranker orders the best hits")
    ] = None,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of a response, to get its next page")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="show how each score was computed")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the response of the API")] = False,
) -> None:
    """Search the documents."""
    with reported_errors():
        fields: dict[str, object] = {
            "query": query,
            "mode": mode,
            "limit": limit,
            "profile": profile,
            "collapse": collapse,
            "neighbors": neighbors,
            "rerank": rerank,
            "cursor": cursor,
            "explain": explain,
            "timeout_ms": CLI_TIMEOUT_MS,
        }
        if collection:
            fields["collections"] = collection
        request = search_request(fields)

        async def run(service: Service) -> tuple[SearchResponse, list[str]]:
            response = await service.search.search(request, service.anonymous, "cli")
            return response, [source.name for source in service.search.sources]

        response, sources = with_service(with_cli_timeout(load()), run)
    if as_json:
        sys.stdout.write(msgspec.json.encode(response).decode() + "\n")
        return
    print_response(out, query, response, sources)
    print_explanation(out, response)
