"""Settings of server mode for the benchmarks: servers that the environment names, or those of the tests.

No package contains a Qdrant server. If ``TRIVIUM_TEST_QDRANT_URL`` is not set, the local mode of the Qdrant client is
used: it compares every vector, so its results are those of Qdrant, but its speed is not.
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

from adapters.vector import qdrant_connection
from orchestrator.settings import Settings, load
from tests.servers import start


@contextmanager
def server_settings(data_dir: Path) -> Iterator[Settings]:
    """Settings with every source on a server, and with an index name that is not in use."""
    with ExitStack() as running:
        urls = {
            name: os.environ.get(f"TRIVIUM_TEST_{name.upper()}_URL") or running.enter_context(getattr(start, name)())
            for name in ("opensearch", "bolt")
        }
        vector = os.environ.get("TRIVIUM_TEST_QDRANT_URL")
        if vector is None:
            vector = "qdrant+http://127.0.0.1:1"
            client = AsyncQdrantClient(":memory:")
            running.enter_context(mock.patch.object(qdrant_connection, "connect", lambda *_: client))
            running.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", "(Payload indexes|Local mode)", UserWarning)
        yield load(
            data_dir=data_dir,
            vector=vector,
            keyword=urls["opensearch"],
            graph=urls["bolt"],
            index_name=f"bench-{uuid.uuid4().hex[:12]}",
            source_timeout_ms=10_000,
            query_encoder="model",
        )
