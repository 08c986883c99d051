"""``trivium demo``: the documentation of the Python installation that runs it, indexed, searched and served."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from orchestrator.cli.serve_command import Port
from orchestrator.cli.terminal import out, reported_errors, with_cli_timeout, with_service
from orchestrator.cli.written_documents import optimize
from orchestrator.http.server import ensure_free, serve_http
from orchestrator.service.service import Service
from orchestrator.settings.loading import PREFIX, load


def demo(
    port: Port = 8080,
    serve: Annotated[bool, typer.Option(help="serve the API afterwards")] = True,
) -> None:
    """Index the documentation of this Python, answer three questions, serve the API."""
    from orchestrator.cli.demo import steps  # noqa: PLC0415  # imports the language reference

    with reported_errors():
        if serve:
            ensure_free("127.0.0.1", port)  # before indexing, which takes a minute

        async def run(service: Service) -> None:
            await steps.index_documentation(service, out)
            await steps.answer_questions(service, out)
            await optimize(service)

        settings = load()
        if "log_level" not in settings.server.model_fields_set:
            os.environ[f"{PREFIX}LOG_LEVEL"] = "warning"  # else the log follows what is printed here
        with_service(with_cli_timeout(settings), run, writes=True)
        if serve:
            out.print(f"serving on http://127.0.0.1:{port}, stop with Ctrl-C; for example:")
            out.print(steps.example_request(port), soft_wrap=True, highlight=False, markup=False)
            if settings.server.console:
                out.print("or in a browser:")
                out.print(steps.console_address(port), soft_wrap=True, highlight=False, markup=False)
            serve_http(settings, "127.0.0.1", port, workers=1)
