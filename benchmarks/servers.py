"""Settings of server mode for the benchmarks: servers that the environment names, or the tests' own.

No Qdrant server can be had from a package. Where ``TRIVIUM_TEST_QDRANT_URL`` names none, the Qdrant client's local
mode stands in for one: it compares every vector, so it says what Qdrant means, and nothing of how fast it is.
"""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

from qdrant_client import AsyncQdrantClient

from adapters.vector import qdrant
from orchestrator.settings import Settings, read
from tests.servers import start


@contextmanager
def server_settings(data_dir: Path) -> Iterator[Settings]:
    """Settings with every source on a server, under an index name of their own."""
    with ExitStack() as running:
        urls = {
            name: os.environ.get(f"TRIVIUM_TEST_{name.upper()}_URL") or running.enter_context(getattr(start, name)())
            for name in ("opensearch", "bolt")
        }
        vector = os.environ.get("TRIVIUM_TEST_QDRANT_URL")
        if vector is None:
            vector = "qdrant+http://127.0.0.1:1"
            client = AsyncQdrantClient(":memory:")
            running.enter_context(mock.patch.object(qdrant, "connect", lambda *_: client))
            running.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", "(Payload indexes|Local mode)", UserWarning)
        yield read(
            data_dir=data_dir,
            vector=vector,
            keyword=urls["opensearch"],
            graph=urls["bolt"],
            index_name=f"bench-{uuid.uuid4().hex[:12]}",
            source_timeout_ms=10_000,
            query_encoder="model",
        )
