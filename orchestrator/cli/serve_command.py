"""``trivium serve``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.auth.keyring import read_key_file
from orchestrator.cli.terminal import reported_errors
from orchestrator.http.server import serve_http
from orchestrator.settings.loading import FILE_VARIABLE, load
from orchestrator.telemetry.tracing import TracingNotInstalled, ensure_installed

Port = Annotated[int, typer.Option(min=1, max=65_535)]


def serve(
    host: Annotated[str, typer.Option(help="a loopback address, unless there are keys")] = "127.0.0.1",
    port: Port = 8080,
    workers: Annotated[int, typer.Option(min=1, max=256, help="processes")] = 1,
    settings: Annotated[
        Path | None, typer.Option(help="a file of settings, as `trivium tune` writes it; the environment overrides it")
    ] = None,
) -> None:
    """Serve the API."""
    if settings:
        os.environ[FILE_VARIABLE] = str(settings)  # for the workers, too
    with reported_errors(usage_errors=(TracingNotInstalled,)):
        ensure_installed()
        chosen = load()  # reports errors once, not in every worker
        if chosen.access.keys_file:
            read_key_file(chosen.access.keys_file)
        serve_http(chosen, host, port, workers)
