"""Servers for the benchmarks.

No package contains a Qdrant server: without one, vectors are embedded, or in the local mode of the Qdrant client, which
compares every vector, so that its results are those of Qdrant, but not its speed.
"""

from __future__ import annotations

import os
import shutil
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

import anyio
from qdrant_client import AsyncQdrantClient

from adapters.vector import qdrant_connection
from orchestrator.bootstrap import open_service
from orchestrator.settings import Settings, load
from tests.servers import start


@contextmanager
def started_servers(folder: Path) -> Iterator[dict[str, start.Server]]:
    """An OpenSearch and a Neo4j, and a Qdrant if there is one on the path, by the setting that names a source."""
    makers: dict[str, Callable[[Path], start.Server]] = {
        "keyword": partial(start.Java, "opensearch"),
        "graph": partial(start.Java, "bolt"),
    }
    if shutil.which("qdrant"):
        makers["vector"] = start.Qdrant
    with ExitStack() as running:
        servers = {}
        for source, make in makers.items():
            (folder / source).mkdir()
            servers[source] = running.enter_context(make(folder / source))
        yield servers


@contextmanager
def server_settings(data_dir: Path) -> Iterator[Settings]:
    """Settings with every source on a server, and with an index name that is not in use.

    The servers are those that the environment names, or those of the tests.
    """
    with ExitStack() as running:
        urls = {
            name: os.environ.get(f"TRIVIUM_TEST_{name.upper()}_URL") or running.enter_context(getattr(start, name)())
            for name in ("opensearch", "bolt", *(["qdrant"] if has_qdrant() else []))
        }
        if "qdrant" not in urls:
            client = AsyncQdrantClient(":memory:")
            running.enter_context(mock.patch.object(qdrant_connection, "connect", lambda *_: client))
            running.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", "(Payload indexes|Local mode)", UserWarning)
        settings = load(
            data_dir=data_dir,
            vector=urls.get("qdrant", "qdrant+http://127.0.0.1:1"),
            keyword=urls["opensearch"],
            graph=urls["bolt"],
            index_name=f"bench-{uuid.uuid4().hex[:12]}",
            source_timeout_ms=10_000,
            query_encoder="model",
        )
        yield settings
        if "qdrant" in urls:  # the local mode ends with its client
            anyio.run(_drop, settings)


def has_qdrant() -> bool:
    """Whether a Qdrant is on the path, or named by the environment."""
    return bool(shutil.which("qdrant") or os.environ.get("TRIVIUM_TEST_QDRANT_URL"))


async def _drop(settings: Settings) -> None:
    async with open_service(settings, prepare=False) as service:
        for server in service.health.servers.values():
            await server.drop()
