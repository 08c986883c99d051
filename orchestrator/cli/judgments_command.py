"""``trivium judgments``: judged queries from the feedback of users."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from adapters import Scope
from orchestrator.cli.judge_command import query_texts
from orchestrator.cli.recorded_feedback import opened_feedback
from orchestrator.cli.scope_options import Environment, Tenant
from orchestrator.cli.terminal import err, reported_errors
from orchestrator.evaluation.feedback_judgments import FeedbackJudgments, judgments_of
from orchestrator.evaluation.judged_folder import JudgedFolder
from orchestrator.evaluation.judgments import BadDataset
from orchestrator.evaluation.ubi import write_ubi
from orchestrator.service.feedback import query_hash


def judgments(
    output: Annotated[Path, typer.Argument(help="a new folder, for queries.jsonl and qrels.tsv")],
    queries: Annotated[
        Path | None,
        typer.Option(help="queries, as for `judge`: their texts, if the service has TRIVIUM_FEEDBACK=ids"),
    ] = None,
    min_looks: Annotated[
        float,
        typer.Option(min=1, help="how often users must have looked at a document to judge it by clicks, estimated"),
    ] = 5,
    *,
    ubi: Annotated[
        bool, typer.Option("--ubi", help="write all that is recorded with the names of UBI instead")
    ] = False,
    tenant: Tenant = None,
    environment: Environment = None,
) -> None:
    """Make judged queries of the feedback that a service recorded: of votes, and of clicks by a click model."""
    with reported_errors(usage_errors=(BadDataset,)):
        store, scope = opened_feedback(tenant, environment)
        if output.exists() and any(output.iterdir() if output.is_dir() else [output]):
            raise BadDataset(f"{output} exists; name a new folder")
        if ubi:
            of_queries, of_events = write_ubi(store.read(scope), output)
            err.print(f"queries in {escape(str(output))}: {of_queries}; events: {of_events}", soft_wrap=True)
            return
        texts = {query_hash(text): text for text in query_texts(queries)} if queries else {}
        found = judgments_of(store.read(scope), texts, min_looks)
        if not found.judgments:
            raise BadDataset(_nothing(found, scope, min_looks))
        folder = JudgedFolder(output)
        for each in found.judgments:
            folder.add(each.query, each.document, each.relevance)
        counts = f"{found.responses} responses with feedback, {found.unknown} of them of unknown queries"
        err.print(
            f"judgments in {escape(str(output))}: {folder.count}; queries: {folder.judged_queries}; of {counts}",
            soft_wrap=True,
            highlight=False,
        )
        files = f"--queries {folder.queries_file} --qrels {folder.judgments_file}"
        err.print(f"[dim]trivium evaluate {escape(files)} measures every source on them[/dim]", soft_wrap=True)


def _nothing(found: FeedbackJudgments, scope: Scope, min_looks: float) -> str:
    place = f"the tenant {scope.tenant!r} and the environment {scope.environment!r}"
    if not found.responses:
        return f"there is no feedback for {place}"
    if found.unknown == found.responses:
        return (
            f"the queries of {place} are recorded without their texts: name a file of queries with --queries, or set "
            "TRIVIUM_FEEDBACK=texts"
        )
    return f"no document was looked at {min_looks:g} times for a query, and none has a vote; --min-looks may be less"
