"""Backup and restore, by the commands of ``docs/operations.md``: wiped stores give the same responses again.

The embedded index, a real OpenSearch and a real Neo4j. Qdrant and Memgraph cannot be had here.
"""

from __future__ import annotations

import json
import re
import shutil
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters import Document, Link
from orchestrator.bootstrap import open_service
from orchestrator.cli.maintain import examine
from orchestrator.settings import Settings, load
from tests.conftest import without
from tests.orchestrator.bootstrap.helpers import index, search
from tests.servers.start import Java, NotAvailable

pytestmark = [pytest.mark.server, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
QUERIES = ("who directed The Prestige?", "magicians", "Christopher Nolan", "nothing of the kind")
DOCUMENTS = [
    Document(id="nolan", title="Christopher Nolan", text="Christopher Nolan directed The Prestige."),
    Document(id="prestige", title="The Prestige", text="A film about two magicians.", links=(Link("nolan", "by"),)),
    *(Document(id=f"other-{number}", text=f"Nothing of the kind, number {number}.") for number in range(20)),
]


class Stores:
    """A real OpenSearch and a real Neo4j, whose data is in folders of a test."""

    def __init__(self, folder: Path) -> None:
        self.opensearch_data, self.bolt_data = folder / "opensearch" / "data", folder / "bolt" / "data"
        for data in (self.opensearch_data, self.bolt_data):
            data.parent.mkdir()
        self.opensearch = Java("opensearch", self.opensearch_data.parent)
        self.bolt = Java("bolt", self.bolt_data.parent)

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Send a request to OpenSearch."""
        url = self.opensearch.url.replace("opensearch+", "") + path
        content = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, content, headers, method=method), timeout=60) as found:
            return json.loads(found.read())


@contextmanager
def stopped(server: Java) -> Iterator[None]:
    """Inside, the server does not run; afterwards it runs again."""
    server.__exit__()
    yield
    server.start()


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    try:
        running = Stores(tmp_path)
        with running.opensearch, running.bolt:
            yield running
    except NotAvailable as error:
        without(error)


def responses(settings: Settings) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        async with open_service(settings) as service:
            found = {query: await search(service, query, explain=True) for query in QUERIES}
            assert [each.degraded for each in found.values()] == [()] * len(QUERIES)
            return {query: [(hit.id, hit.score, hit.sources) for hit in each.hits] for query, each in found.items()}

    return anyio.run(run)


def test_wiped_stores_are_restored_and_respond_as_before(stores: Stores, tmp_path: Path, model_dir: Path) -> None:
    settings = load(
        data_dir=tmp_path / "data",
        model_dir=model_dir,
        keyword=stores.opensearch.url,
        graph=stores.bolt.url,
        index_name=f"test-{uuid.uuid4().hex}",
        source_timeout_ms=20_000,
        upkeep_interval_s=0,
    )

    async def fill() -> None:
        async with open_service(settings) as service:
            report = await index(service, DOCUMENTS)
            assert (report.indexed, report.pending) == (len(DOCUMENTS), {})
            await service.maintenance.optimize(lambda _: None)

    anyio.run(fill)
    before = responses(settings)
    assert all(before.values())

    backup = tmp_path / "backup"
    repository = {"type": "fs", "settings": {"location": "backup"}}
    shutil.copytree(settings.storage.data_dir, backup / "data")
    stores.request("PUT", "/_snapshot/backup", repository)
    snapshot = stores.request("PUT", "/_snapshot/backup/1?wait_for_completion=true")
    assert snapshot["snapshot"]["state"] == "SUCCESS"
    with stopped(stores.bolt):
        shutil.copytree(stores.bolt_data, backup / "bolt")

        shutil.rmtree(settings.storage.data_dir)
        shutil.rmtree(stores.bolt_data)
        with stopped(stores.opensearch):
            shutil.rmtree(stores.opensearch_data)
        assert not [each for each in stores.request("GET", "/_cat/indices?format=json") if "test-" in each["index"]]

        shutil.copytree(backup / "data", settings.storage.data_dir)
        stores.request("PUT", "/_snapshot/backup", repository)
        restored = stores.request("POST", "/_snapshot/backup/1/_restore?wait_for_completion=true")
        assert restored["snapshot"]["shards"]["failed"] == 0
        shutil.copytree(backup / "bolt", stores.bolt_data)

    assert responses(settings) == before
    assert [finding for finding in examine(settings) if not finding.is_well] == []


def test_the_page_names_the_commands_that_are_tested() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    for command in ("PUT _snapshot/backup/1?wait_for_completion=true", "POST _snapshot/backup/1/_restore"):
        assert re.search(re.escape(command), page)
