"""Opens the reranker."""

from __future__ import annotations

from contextlib import AsyncExitStack

from adapters.rerank import reranker
from orchestrator.results.rerank import RerankStage
from orchestrator.settings.groups import Settings


def open_reranker(settings: Settings, stack: AsyncExitStack) -> RerankStage:
    """The reranker that the settings name, if any; closed with the stack.

    :raises Unavailable: if what it needs is not installed.
    """
    timeout_s = settings.rerank.timeout_ms / 1_000
    opened, close = reranker(
        settings.rerank.url, settings.rerank.model, settings.rerank.api_key.get_secret_value(), timeout_s
    )
    if close:
        stack.push_async_callback(close)
    return RerankStage(opened, timeout_s)
