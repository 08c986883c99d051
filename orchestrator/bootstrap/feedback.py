"""Opens the file of feedback, which all generations of a data folder share."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

from adapters.storage.feedback_store import FeedbackStore
from orchestrator.indexing.generations.catalog import Catalog
from orchestrator.service.feedback import FeedbackService
from orchestrator.settings.groups import Settings
from orchestrator.settings.loading import SettingsError

_FILE = "feedback.sqlite"


def feedback_file(settings: Settings) -> Path:
    """The path of the file of a data folder, or of the folder of one of its generations."""
    return Catalog(settings.storage.data_dir).folder.parent / _FILE


def open_feedback(settings: Settings, stack: AsyncExitStack) -> FeedbackService:
    """The feedback of a service. The file is created with the first response.

    :param stack: closes the file.
    :raises SettingsError: if hits of two profiles would be mixed, and nothing would say which are used.
    """
    if settings.requests.interleave and settings.feedback.kept == "nothing":
        raise SettingsError("TRIVIUM_INTERLEAVE needs TRIVIUM_FEEDBACK, which is nothing; allowed are ids and texts")
    store = None
    if settings.feedback.kept != "nothing":
        store = FeedbackStore(feedback_file(settings), settings.feedback.max_bytes)
        stack.callback(store.close)
    feedback = FeedbackService(store, settings.feedback.kept == "texts")
    stack.push_async_callback(feedback.flush)  # when no request is running any more
    return feedback
