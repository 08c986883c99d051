"""``trivium list``, ``trivium export`` and ``trivium delete``: the same rules as ``/v1/documents``."""

from __future__ import annotations

import sys
from typing import Annotated, TypeAlias

import msgspec
import typer
from rich.markup import escape

from adapters import Document
from adapters.model.spelling import nearest
from orchestrator.auth.principal import Principal
from orchestrator.cli.results import print_empty_index
from orchestrator.cli.scope_options import Environment, Tenant, owner
from orchestrator.cli.tables import Column, print_table
from orchestrator.cli.terminal import err, lacks_data, out, reported_errors, with_cli_timeout, with_service
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.documents import DeleteManyResponse, DeleteResponse
from orchestrator.schema.search_input import listed_filter
from orchestrator.service.service import Service
from orchestrator.settings.loading import load

_Collection: TypeAlias = Annotated[str | None, typer.Option(help="only documents of this collection")]
_Filter: TypeAlias = Annotated[
    str | None,
    typer.Option("--filter", help='a filter as in a search, in JSON: {"tags": "old"}'),
]
_Json: TypeAlias = Annotated[bool, typer.Option("--json", help="print the outcome as JSON")]


async def _warn_of_collection(service: Service, principal: Principal, collection: str | None) -> None:
    """Say that no document is in the collection that an option names, and which is the nearest."""
    if collection is not None:
        names = [each.name for each in (await service.documents.collections(principal)).collections]
        if collection not in names:
            near = nearest(collection, names)
            hint = f"; the nearest is {near}" if near else ""
            err.print(escape(f"no document is in the collection {collection!r}{hint}"), style="yellow", soft_wrap=True)


def list_documents(
    collection: _Collection = None,
    filter_json: _Filter = None,
    limit: Annotated[int, typer.Option(help="maximum number of documents, 1 to 1000")] = 20,
    *,
    tenant: Tenant = None,
    environment: Environment = None,
    as_json: _Json = False,
) -> None:
    """Show documents: collection, id and title."""
    with reported_errors():
        condition = listed_filter(filter_json, collection)

        async def run(service: Service) -> tuple[list[Document], bool]:
            principal = owner(service, tenant, environment)
            await _warn_of_collection(service, principal, collection)
            page = await service.documents.page(principal, condition, limit)
            return [record.whole for record in page.records], page.next is not None

        settings = load()
        documents, has_more = with_service(with_cli_timeout(settings), run)
    if as_json:
        sys.stdout.write(msgspec.json.encode(documents).decode() + "\n")
        return
    if lacks_data(settings):
        print_empty_index(err, settings)
        return
    rows = [(each.collection, each.id, each.title) for each in documents]
    print_table(out, [Column(name, is_text=True) for name in ("collection", "id", "title")], rows)
    if has_more:
        out.print(f"the first {len(documents)}; `trivium export` prints all")


def export(
    collection: _Collection = None,
    filter_json: _Filter = None,
    *,
    tenant: Tenant = None,
    environment: Environment = None,
) -> None:
    """Print documents as `trivium index` reads them, one JSON object on each line."""
    with reported_errors():
        condition = listed_filter(filter_json, collection)

        async def run(service: Service) -> tuple[int, int]:
            count, principal = 0, owner(service, tenant, environment)
            await _warn_of_collection(service, principal, collection)
            async for document in service.documents.all(principal, condition):
                sys.stdout.buffer.write(msgspec.json.encode(document) + b"\n")
                count += 1
            sys.stdout.buffer.flush()
            is_whole = filter_json is None and collection is None
            return count, await service.count() - count if is_whole else 0

        count, others = with_service(with_cli_timeout(load()), run)
    err.print(f"{count} documents", highlight=False)
    if others > 0:
        err.print(
            f"[yellow]{others} documents of other tenants or environments were not printed: --tenant and --environment "
            "name one[/yellow]",
            soft_wrap=True,
            highlight=False,
        )


def delete(
    ids: Annotated[list[str] | None, typer.Argument(help="ids of documents", show_default=False)] = None,
    *,
    collection: Annotated[str | None, typer.Option(help="the collection of the documents")] = None,
    filter_json: _Filter = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="count the documents, delete none")] = False,
    keep_chunks: Annotated[
        bool, typer.Option("--keep-chunks", help="do not delete the chunks of the documents")
    ] = False,
    tenant: Tenant = None,
    environment: Environment = None,
    as_json: _Json = False,
) -> None:
    """Delete documents by id, with their chunks; or all that match a filter, or are in a collection."""
    with reported_errors():
        if not ids and filter_json is None and collection is None:
            raise BadRequest("nothing to delete: give ids, --filter or --collection")
        if ids and (filter_json is not None or dry_run):
            raise BadRequest("--filter and --dry-run are for deleting without ids")
        if keep_chunks and not ids:
            raise BadRequest("--keep-chunks is for deleting by id; a filter deletes only what matches it")
        condition = listed_filter(filter_json, collection)

        async def run(service: Service) -> DeleteManyResponse | list[DeleteResponse]:
            principal = owner(service, tenant, environment)
            await _warn_of_collection(service, principal, collection)
            if not ids:
                return await service.documents.delete_many(condition, principal, dry_run)
            return [await service.documents.delete(id_, principal, collection, not keep_chunks) for id_ in ids]

        outcome = with_service(with_cli_timeout(load()), run)
    if as_json:
        sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
    elif isinstance(outcome, DeleteManyResponse):
        out.print(f"{outcome.matched} documents match, {outcome.deleted} deleted")
    else:
        deleted, chunks = sum(bool(each.deleted) for each in outcome), sum(each.chunks for each in outcome)
        out.print(f"{deleted} deleted, with {chunks} chunks; {len(outcome) - deleted} not found")
