"""The service with sources on servers: the same requests, and what differs if a server is away.

Vectors are embedded, because no package contains a Qdrant server; keywords are in a real OpenSearch, the graph is in a
real Neo4j over Bolt.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint
from qdrant_client import AsyncQdrantClient
from typer.testing import CliRunner

from adapters import Document, Link, VersionMismatch
from adapters.vector import qdrant_connection
from orchestrator.bootstrap import open_service, sources
from orchestrator.cli.main import main
from orchestrator.cli.maintain import examine
from orchestrator.execution.stage_results import AllSourcesFailed
from orchestrator.indexing.log.quarantine import Quarantine, Quarantined
from orchestrator.indexing.log.write import Write
from orchestrator.indexing.ndjson import ParsedLine, ValidLine
from orchestrator.service.service import Service
from orchestrator.settings import Settings, load
from orchestrator.settings.loading import environment_of
from tests.orchestrator.bootstrap.helpers import index, search
from tests.secrets import register_secret
from tests.servers.start import free_port

pytestmark = [pytest.mark.anyio, pytest.mark.server]

DOCUMENTS = [
    Document(id="nolan", title="Christopher Nolan", text="Christopher Nolan directed The Prestige.", tags=("man",)),
    Document(id="prestige", title="The Prestige", text="A film about two magicians.", links=(Link("nolan", "by"),)),
    Document(id="secret", title="The Prestige", text="What only some may read.", sensitivity="restricted"),
    Document(id="noise", text="Nothing of the kind."),
]


for _document in DOCUMENTS:
    register_secret(_document.text)


@pytest.fixture
def settings(tmp_path: Path, model_dir: Path, server_url: Callable[[str], str]) -> Settings:
    return load(
        data_dir=tmp_path / "data",
        model_dir=model_dir,
        keyword=server_url("opensearch"),
        graph=server_url("bolt"),
        index_name=f"test-{uuid.uuid4().hex}",
        source_timeout_ms=20_000,
    )


async def ids(service: Service, text: str, **fields: object) -> list[str]:
    response = await search(service, text, **fields)
    assert response.degraded == ()
    return [hit.id for hit in response.hits]


async def test_documents_are_found_and_found_again_after_a_restart(settings: Settings) -> None:
    async with open_service(settings) as service:
        report = await index(service, DOCUMENTS)
        assert (report.indexed, report.pending, report.rejected) == (4, {}, {})
        await service.maintenance.optimize(lambda _: None)
        assert (await ids(service, "Who directed The Prestige?"))[:2] in (["nolan", "prestige"], ["prestige", "nolan"])
        assert await service.health.by_source() == {"vector": "ok", "keyword": "ok", "graph": "ok"}
        assert sorted(await ids(service, "The Prestige", mode="graph")) == ["nolan", "prestige"]
        boosted = await ids(service, "The Prestige", mode="graph", boosts={"centrality": True})
        assert sorted(boosted) == ["nolan", "prestige"]
        explained = await search(service, "The Prestige", mode="graph", boosts={"centrality": True})
        assert max(hit.boosts["centrality"] for hit in explained.hits) > 1  # measured by optimize() on the server
        assert await ids(service, "magicians", mode="keyword") == ["prestige"]
        assert (await service.documents.delete("prestige", service.anonymous)).deleted
        assert await ids(service, "magicians", mode="keyword") == []
        generation = service.documents.generation()
    async with open_service(settings) as service:
        assert service.documents.generation() == generation
        assert "prestige" not in await ids(service, "The Prestige")
        assert "secret" not in await ids(service, "What only some may read", mode="hybrid")
        assert await service.count() == 3


def test_doctor_finds_every_server_well_and_names_one_that_is_away(settings: Settings) -> None:
    async def fill() -> None:
        async with open_service(settings) as service:
            await index(service, DOCUMENTS)

    anyio.run(fill)
    findings = examine(settings)
    assert [finding for finding in findings if not finding.is_well] == []
    assert {"keyword", "keyword index", "keyword clock", "graph", "graph clock", "write log", "documents"} <= {
        finding.subject for finding in findings
    }
    away = settings.changed(graph=f"bolt://127.0.0.1:{free_port()}", source_timeout_ms=300)
    not_well = {finding.subject: finding for finding in examine(away) if not finding.is_well}
    assert "cannot be reached" in not_well["graph"].observation
    assert "TRIVIUM_GRAPH" in not_well["graph"].advice


async def test_a_server_that_is_away_degrades_the_response_and_gets_its_writes_later(settings: Settings) -> None:
    away = settings.changed(graph=f"bolt://127.0.0.1:{free_port()}", source_timeout_ms=500)
    async with open_service(away) as service:
        report = await index(service, DOCUMENTS)
        assert list(report.pending) == ["graph"]
        response = await search(service, "magicians", mode="hybrid")
        assert response.hits[0].id == "prestige"
        assert [degraded.source for degraded in response.degraded] == ["graph"]
        with pytest.raises(AllSourcesFailed, match="graph: the graph server cannot be reached"):
            await search(service, "magicians", mode="graph")
        states = await service.health.by_source()
        assert (states["vector"], states["keyword"]) == ("ok", "ok")
        assert "cannot be reached" in states["graph"]
    async with open_service(settings) as service:
        # Another address is another replica: it has applied nothing yet, so it gets every write that the log still has.
        await service.maintenance.apply_unapplied()  # as `trivium serve` does from its start on
        assert sorted(await ids(service, "The Prestige", mode="graph")) == ["nolan", "prestige"]


@pytest.fixture
def vector_url(monkeypatch: pytest.MonkeyPatch) -> str:
    """A Qdrant server if there is one, else the client's local mode."""
    if configured := os.environ.get("TRIVIUM_TEST_QDRANT_URL"):
        return configured
    client = AsyncQdrantClient(":memory:")
    monkeypatch.setattr(client, "close", checkpoint)  # it is closed by the first of two services
    monkeypatch.setattr(qdrant_connection, "connect", lambda *_: client)
    return "qdrant+http://127.0.0.1:1"


@pytest.mark.filterwarnings("ignore:(Payload indexes|Local mode):UserWarning")
async def test_pages_are_read_from_the_vector_source_while_the_keyword_source_is_away(
    settings: Settings, vector_url: str
) -> None:
    settings = settings.changed(vector=vector_url)
    async with open_service(settings) as service:
        await index(service, DOCUMENTS)
        whole = await search(service, "The Prestige")
        assert whole.degraded == ()
    away = settings.changed(keyword=f"opensearch+http://127.0.0.1:{free_port()}", source_timeout_ms=2_000)
    async with open_service(away) as service:
        response = await search(service, "The Prestige")
        assert "keyword" in {each.source for each in response.degraded}
        assert {(hit.id, hit.text) for hit in response.hits} == {(hit.id, hit.text) for hit in whole.hits}
        assert "secret" not in {hit.id for hit in response.hits}


async def test_writes_go_on_while_the_document_store_is_away_and_replace_nothing_above_their_clearance(
    settings: Settings,
) -> None:
    """All sources on servers, so the documents are in OpenSearch. No Qdrant server can be had: its writes wait."""
    settings = settings.changed(vector=f"qdrant+http://127.0.0.1:{free_port()}")
    async with open_service(settings) as service:
        await index(service, DOCUMENTS)
        everyone = replace(service.anonymous, clearance="restricted")
        assert (await service.documents.get("secret", everyone)).text == "What only some may read."
    public = replace(everyone, clearance="public")
    stolen = Document(id="secret", title="The Prestige", text="stolen", sensitivity="public")
    new = Document(id="new", text="Nothing of the kind.", sensitivity="public")
    away = settings.changed(keyword=f"opensearch+http://127.0.0.1:{free_port()}", source_timeout_ms=2_000)
    async with open_service(away) as service:

        async def read() -> list[ParsedLine]:
            return [ValidLine(1, stolen), ValidLine(2, new)]

        outcome = await service.documents.put(read, public)  # as POST /v1/documents
        assert (outcome.pending, outcome.indexed, outcome.rejected) == (2, 0, 0)
        assert {"keyword", "vector", "graph"} == {name.split()[0] for name in outcome.lines[0].missing}
        report = await service.documents.index([ValidLine(1, stolen)], public, pytest.fail)  # as `trivium index`
        assert (report.indexed, len(report.undecided), len(report.pending)) == (0, 1, 3)
        assert (await service.documents.delete("secret", public)).deleted is None
    async with open_service(settings) as service:
        await service.maintenance.apply_unapplied()
        assert (await service.documents.get("secret", everyone)).text == "What only some may read."
        assert (await service.documents.get("new", everyone)).text == "Nothing of the kind."
        assert sorted(await ids(service, "The Prestige", mode="graph")) == ["nolan", "prestige"]


async def test_an_index_of_another_build_is_reported_in_every_response_or_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_service(settings) as service:
        await index(service, DOCUMENTS)
    monkeypatch.setattr(sources, "_SERVER_FORMAT", 999)
    async with open_service(settings) as service:
        response = await search(service, "The Prestige")
        assert {hit.id for hit in response.hits[:2]} == {"nolan", "prestige"}
        assert {degraded.source for degraded in response.degraded} == {"keyword", "graph"}
        assert all("`trivium backfill` builds one as the settings require" in each.reason for each in response.degraded)
        report = await index(service, DOCUMENTS)
        assert len(report.pending) == 2  # it waits in the log, and is written to no index of another build
    with pytest.raises(VersionMismatch, match="`trivium backfill` builds one as the settings require"):
        async with open_service(settings.changed(strict_index=True)):
            pass


def test_refused_documents_are_listed_and_written_again_by_command(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry is made by hand: the edges let no document pass that a healthy OpenSearch refuses."""

    async def fill() -> None:
        async with open_service(settings) as service:
            for document in reversed(DOCUMENTS[:2]):
                await index(service, [document])
            changed = msgspec.structs.replace(DOCUMENTS[1], text="Zanzibar")
            (prepared,) = await service.documents.lines.pipeline.prepare([changed], service.anonymous.scope)
            assert service.maintenance.replication
            (replica,) = (name for name in service.maintenance.replication.replicas if name.startswith("keyword "))
            write = Write.of([prepared], [])
            entry = Quarantined(replica, service.documents.generation(), "a term is too long", write)
            Quarantine(settings.storage.data_dir / "write-log" / "quarantine").add([entry])

    async def keyword_hits() -> list[str]:
        async with open_service(settings) as service:
            return await ids(service, "Zanzibar", mode="keyword")

    anyio.run(fill)
    for name, value in environment_of(settings).items():
        monkeypatch.setenv(name, value)
    assert anyio.run(keyword_hits) == []
    (finding,) = (each for each in examine(settings) if each.subject.startswith("keyword ") and not each.is_well)
    assert finding.observation == "refuses 1 documents of tenant 'default', environment 'default'"
    listed = CliRunner().invoke(main, ["quarantine"], catch_exceptions=False)
    assert (listed.exit_code, DOCUMENTS[1].id in listed.stdout) == (0, True)
    retried = CliRunner().invoke(main, ["quarantine", "--retry"], catch_exceptions=False)
    assert (retried.exit_code, retried.stderr) == (0, "1 accepted\n")
    assert DOCUMENTS[1].id not in retried.stdout
    assert anyio.run(keyword_hits) == [DOCUMENTS[1].id]
