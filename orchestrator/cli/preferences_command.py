"""``trivium preferences``: which of two profiles users prefer."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
import typer

from orchestrator.cli.recorded_feedback import opened_feedback
from orchestrator.cli.scope_options import Environment, Tenant
from orchestrator.cli.tables import Column, print_table
from orchestrator.cli.terminal import out, reported_errors
from orchestrator.evaluation.judgments import BadDataset


def preferences(
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
    tenant: Tenant = None,
    environment: Environment = None,
) -> None:
    """Compare two profiles on live queries: by the feedback to responses that mix their hits (TRIVIUM_INTERLEAVE)."""
    from orchestrator.evaluation.user_preferences import preferences as compared  # noqa: PLC0415  # scipy takes long

    with reported_errors(usage_errors=(BadDataset,)):
        store, scope = opened_feedback(tenant, environment)
        found = compared(store.read(scope))
        if as_json:
            sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
            return
        if not found:
            raise BadDataset(
                f"no hit of two profiles was used for the tenant {scope.tenant!r} and the environment "
                f"{scope.environment!r}: a service mixes them with TRIVIUM_INTERLEAVE, such as rrf:0.1"
            )
        rows = [
            (f"{each.profile} and {each.other}", *map(str, (each.wins, each.losses, each.ties)), f"{each.p:.4f}")
            for each in found
        ]
        names = ("more of the first used", "more of the second", "as many", "p")
        print_table(out, [Column("profiles", is_text=True), *map(Column, names)], rows)
