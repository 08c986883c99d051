"""The feedback in the data folder, for commands that read it."""

from __future__ import annotations

from adapters import Scope
from adapters.storage.feedback_store import FeedbackStore
from orchestrator.bootstrap.feedback import feedback_file
from orchestrator.evaluation.judgments import BadDataset
from orchestrator.settings.loading import load


def opened_feedback(tenant: str | None, environment: str | None) -> tuple[FeedbackStore, Scope]:
    """The feedback in the data folder, and the scope to read.

    :raises BadDataset: if there is none.
    """
    settings = load()
    file = feedback_file(settings)
    if not file.exists():
        raise BadDataset(f"{file} does not exist: a service records feedback with TRIVIUM_FEEDBACK=texts or ids")
    scope = Scope(tenant or settings.access.tenant, environment or settings.access.environment)
    return FeedbackStore(file, settings.feedback.max_bytes), scope
