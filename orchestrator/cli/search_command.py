"""``trivium search``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from orchestrator.cli.batch_search import of_own_index, of_service, search_batch
from orchestrator.cli.remote import remote_client
from orchestrator.cli.results import print_empty_index, print_explanation, print_facets, print_response
from orchestrator.cli.scope_options import Environment, Tenant, require_one_caller, searcher
from orchestrator.cli.terminal import CLI_TIMEOUT_MS, out, reported_errors, with_cli_timeout, with_service
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.search import SearchResponse
from orchestrator.schema.search_input import filter_from_json, search_request
from orchestrator.service.service import Service
from orchestrator.settings.group import named_items
from orchestrator.settings.loading import load

_OF_BATCHES = {"batch", "output", "resume", "tenant", "environment", "key", "url", "timeout"}
_FACET_SIZE, _MAX_DIGITS = 10, 9
_MORE_S = 5.0
"""Seconds that a service has beside the time limit of the request, for its retries, too."""


def search(
    context: typer.Context,
    query: Annotated[str | None, typer.Argument(help="text to search for")] = None,
    *,
    batch: Annotated[
        str | None, typer.Option(help="a file with a request on each line, as of the API, or - for standard input")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="with --batch: write the responses to this file")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="with --output: go on after its last line")] = False,
    mode: Annotated[str, typer.Option(help="auto, hybrid, or the name of a source")] = "auto",
    limit: Annotated[int | None, typer.Option(help="1 to TRIVIUM_MAX_LIMIT; TRIVIUM_DEFAULT_LIMIT by default")] = None,
    collection: Annotated[list[str] | None, typer.Option(help="a collection to search; may be repeated")] = None,
    filter_json: Annotated[
        str | None, typer.Option("--filter", help='in JSON: {"language": "en", "created_at": {"gte": "2024-01-01"}}')
    ] = None,
    like: Annotated[
        list[str] | None, typer.Option(help="without a query: the id of a document that the hits are like; repeatable")
    ] = None,
    sort: Annotated[
        str | None, typer.Option(help="without a query: the field to order what matches by, such as -created_at")
    ] = None,
    facet: Annotated[
        list[str] | None, typer.Option(help="a field whose values are counted, such as tags or tags=20; repeatable")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="joint, fast, quality, rrf or weighted_rrf; TRIVIUM_PROFILE by default")
    ] = None,
    fusion: Annotated[str | None, typer.Option(help="a fusion strategy, such as rrf(k=60)")] = None,
    weights: Annotated[str | None, typer.Option(help="of sources, such as vector=1,graph=0.5")] = None,
    boosts: Annotated[str | None, typer.Option(help="with strengths, such as recency=0.3,importance")] = None,
    min_confidence: Annotated[float | None, typer.Option(help="0 to 1: no hits if the confidence is lower")] = None,
    collapse: Annotated[
        str | None, typer.Option(help="one hit for each parent, window or url: parent, window, url or none")
    ] = None,
    neighbors: Annotated[int, typer.Option(help="chunks around each hit, 0 to 10")] = 0,
    rerank: Annotated[
        bool | None, typer.Option("--rerank/--no-rerank", help="whether the reranker orders the best hits")
    ] = None,
    timeout: Annotated[int, typer.Option(help="time limit in ms, 1 to 60000")] = CLI_TIMEOUT_MS,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of a response, to get its next page")] = None,
    tenant: Tenant = None,
    environment: Environment = None,
    key: Annotated[str | None, typer.Option(help="search as the caller with this API key")] = None,
    url: Annotated[str | None, typer.Option(help="search at a running service, such as http://127.0.0.1:8080")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="show how each score was computed")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the response of the API")] = False,
) -> None:
    """Search the documents."""
    with reported_errors():
        require_one_caller(tenant, environment, key, url)
        if batch is not None:
            _require_no_request(context)
            lines = of_own_index(tenant, environment, key) if url is None else of_service(url, key, timeout / 1_000)
            raise typer.Exit(0 if search_batch(batch, output, resume, lines) else 1)
        if query is None and not (like or filter_json or collection):
            raise BadRequest("give a QUERY, --like, a --filter to list what matches, or --batch and a file of requests")
        query = query or ""
        fields: dict[str, Any] = {
            "query": query,
            "mode": mode,
            "limit": limit,
            "collections": collection or None,
            "filter": None if filter_json is None else filter_from_json(filter_json),
            "like": {"ids": like} if like else None,
            "sort": sort,
            "facets": _facets(facet or ()),
            "profile": profile,
            "fusion": fusion,
            "weights": _weights(weights),
            "boosts": _boosts(boosts),
            "min_confidence": min_confidence,
            "collapse": collapse,
            "neighbors": neighbors,
            "rerank": rerank,
            "cursor": cursor,
            "explain": explain,
            "timeout_ms": timeout,
        }
        documents = 1
        if url is not None:
            with remote_client(url, key, timeout / 1_000 + _MORE_S) as client:
                response = client.search(**fields)
        else:
            request = search_request(fields)

            async def run(service: Service) -> tuple[SearchResponse, int]:
                response = await service.search.search(request, searcher(service, tenant, environment, key), "cli")
                return response, -1 if response.hits else await service.count()

            response, documents = with_service(with_cli_timeout(load()), run)
    if as_json:
        sys.stdout.write(msgspec.json.encode(response).decode() + "\n")
        return
    if not documents:
        print_empty_index(out, load())
        return
    print_response(out, query, response, is_paging=cursor is not None)
    print_facets(out, response)
    print_explanation(out, response)


def _require_no_request(context: typer.Context) -> None:
    """Check that no option of a single search is given beside ``--batch``.

    :raises BadRequest: if one is.
    """
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE" and parameter.name not in _OF_BATCHES:
            raise BadRequest(f"{parameter.opts[0]} is for one search: the lines of a batch have fields of their own")


def _facets(fields: Sequence[str]) -> dict[str, int]:
    sizes = {}
    for each in fields:
        name, equals, size = each.rpartition("=")
        if not equals:
            name, size = each, str(_FACET_SIZE)
        if not (size.isdecimal() and len(size) <= _MAX_DIGITS):
            raise BadRequest(f"--facet is {each[:80]!r}, give a field, or a field and a number: tags=20")
        sizes[name] = int(size)
    return sizes


def _weights(text: str | None) -> dict[str, float]:
    items = _items(text or "", "weights", "source=weight")
    return {name: _number("weights", name, value) for name, value in items.items()}


def _boosts(text: str | None) -> dict[str, object]:
    named = ",".join(each if "=" in each else f"{each}=1" for each in (text or "").split(",") if each.strip())
    items = _items(named, "boosts", "boost=strength")
    return {name: {"strength": _number("boosts", name, value)} for name, value in items.items()}


def _items(text: str, option: str, form: str) -> dict[str, str]:
    try:
        return named_items(text, form)
    except ValueError as error:
        raise BadRequest(f"--{option} is {text!r}: {error}") from error


def _number(option: str, name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise BadRequest(f"--{option}: {name} is {value!r}, allowed are numbers") from error
