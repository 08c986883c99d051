"""An evaluation leaves nothing on servers, and can be repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.bootstrap import open_service
from orchestrator.evaluation.dataset import read_dataset
from orchestrator.evaluation.workspace import Workspace
from orchestrator.settings import load

pytestmark = [pytest.mark.anyio, pytest.mark.server]


async def test_an_evaluation_removes_its_indexes_from_servers(
    folder: Path, tmp_path: Path, model_dir: Path, server_url: Callable[[str], str]
) -> None:
    urls = {"keyword": server_url("opensearch"), "graph": server_url("bolt")}
    settings = load(data_dir=tmp_path, model_dir=model_dir, **urls)
    workspace = Workspace.of(settings, read_dataset(folder))
    for _ in range(2):
        indexed = await workspace.index(open_service, lambda _: None)
        assert indexed.documents == 40
        await workspace.remove_from_servers(open_service)
        async with open_service(workspace.settings, prepare=False) as service:
            servers = service.health.servers
            assert set(servers) == {"graph", "keyword"}
            assert not any([await server.check() for server in servers.values()])
