"""The queries of a run in other processes. The runs themselves are in ``test_evaluate.py``."""

from __future__ import annotations

import pickle

from orchestrator.execution.stage_results import AllSourcesFailed, Failed


def test_the_failures_of_all_sources_are_reported_by_another_process() -> None:
    """An exception of a worker process is pickled on its way."""
    failed = AllSourcesFailed((Failed("graph", "away", 1.5),))
    received = pickle.loads(pickle.dumps(failed))  # noqa: S301  # pickled here
    assert (str(received), received.failures) == (str(failed), failed.failures)
