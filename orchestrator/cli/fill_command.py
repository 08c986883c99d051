"""``trivium fill``."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Annotated

import typer

from orchestrator.bootstrap.embedded import documents_in, refit_index, stored_documents
from orchestrator.bootstrap.generations import live_settings
from orchestrator.cli.progress import duration, progress_bar
from orchestrator.cli.terminal import err, out, reported_errors, with_cli_timeout, with_service
from orchestrator.cli.written_documents import optimize
from orchestrator.planning.errors import BadRequest
from orchestrator.service.service import Service
from orchestrator.settings.loading import load


async def _require_servers(service: Service) -> None:
    """Check that there is something to fill, and that every server answers, before anything is changed.

    :raises BadRequest: if no source is on a server, and the embedded index is as the settings require.
    :raises AdapterError: if a server does not answer.
    """
    if service.fill.stores.replication is None and not service.search.mismatches():
        raise BadRequest("no source is on a server: there is nothing to fill")
    for server in service.health.servers.values():
        await server.release()


def fill(
    source: Annotated[
        str | None, typer.Argument(help="vector, graph or keyword; by default each whose server lacks documents")
    ] = None,
) -> None:
    """Give a server the documents that the others have, after a source was moved to it or its index was lost.

    An embedded index is first built again for the sources that are embedded now. Nothing is encoded again if there is
    one. A running service goes on; its writes are applied afterwards.
    """
    start = monotonic()
    with reported_errors():
        settings = with_cli_timeout(live_settings(load()))
        with_service(settings, _require_servers, prepare=False)
        with progress_bar(err, "building the index", "documents", documents_in(settings)) as advance:
            rebuilt = refit_index(settings, advance)
        if rebuilt:
            out.print(
                f"index: built for these settings with {rebuilt.documents} documents; the old one is in {rebuilt.old}",
                soft_wrap=True,
                highlight=False,
            )
        stored = stored_documents(settings)

        async def run(service: Service) -> Mapping[str, int]:
            if rebuilt and service.fill.stores.replication is None:
                return {}
            total = documents_in(settings) or await service.count()
            written = await service.fill.run(
                source, stored, lambda name: progress_bar(err, f"filling {name}", "documents", total)
            )
            await optimize(service)
            return written

        written = with_service(settings, run)
    for name, count in written.items():
        out.print(f"{name}: {count} documents written", highlight=False)
    if not written and not rebuilt:
        out.print("no server lacks documents")
    err.print(f"took {duration(monotonic() - start)}", highlight=False)
