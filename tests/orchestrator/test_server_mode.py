"""The service with its sources on servers: the same requests, and what is different when a server is away.

Vectors are embedded here, since no Qdrant server can be had; keywords are in a real OpenSearch, the graph is in a
real Neo4j over Bolt.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters import Document, Link, VersionMismatch
from orchestrator.contract import SearchRequest
from orchestrator.doctor import examine
from orchestrator.outcome import AllSourcesFailed
from orchestrator.settings import Settings, read
from orchestrator.wiring import Service, opened
from tests.secrets import keep_out
from tests.servers.start import free_port

pytestmark = [pytest.mark.anyio, pytest.mark.server]

DOCUMENTS = [
    Document(id="nolan", title="Christopher Nolan", text="Christopher Nolan directed The Prestige.", tags=("man",)),
    Document(id="prestige", title="The Prestige", text="A film about two magicians.", links=(Link("nolan", "by"),)),
    Document(id="secret", title="The Prestige", text="What only some may read.", sensitivity="restricted"),
    Document(id="noise", text="Nothing of the kind."),
]


for _document in DOCUMENTS:
    keep_out(_document.text)


@pytest.fixture
def settings(tmp_path: Path, model_dir: Path, server_url: Callable[[str], str]) -> Settings:
    return read(
        data_dir=tmp_path / "data",
        model_dir=model_dir,
        keyword=server_url("opensearch"),
        graph=server_url("bolt"),
        index_name=f"test-{uuid.uuid4().hex}",
        source_timeout_ms=20_000,
    )


async def ids(service: Service, text: str, **asked: object) -> list[str]:
    request = SearchRequest(query=text, timeout_ms=20_000, **asked)  # type: ignore[arg-type]
    answer = await service.engine.search(request, service.caller, "t")
    assert answer.degraded == ()
    return [hit.id for hit in answer.hits]


async def test_documents_in_answers_out_and_again_after_a_restart(settings: Settings) -> None:
    async with opened(settings) as service:
        done = await service.writer.index(DOCUMENTS, service.caller.scope)
        assert (done.indexed, done.missing, done.refused) == (4, {}, {})
        assert await service.health() == {"vector": "ok", "keyword": "ok", "graph": "ok"}
        await service.tidy(lambda _: None)
        assert (await ids(service, "Who directed The Prestige?"))[:2] in (["nolan", "prestige"], ["prestige", "nolan"])
        assert sorted(await ids(service, "The Prestige", mode="graph")) == ["nolan", "prestige"]
        boosted = await ids(service, "The Prestige", mode="graph", boosts={"centrality": True})
        assert sorted(boosted) == ["nolan", "prestige"]
        assert await ids(service, "magicians", mode="keyword") == ["prestige"]
        await service.writer.delete(service.caller.scope, ["prestige"])
        assert await ids(service, "magicians", mode="keyword") == []
        generation = service.index.generation()
    async with opened(settings) as service:
        assert service.index.generation() == generation
        assert "prestige" not in await ids(service, "The Prestige")
        assert "secret" not in await ids(service, "What only some may read", mode="hybrid")
        assert await service.count() == 3


async def test_doctor_finds_everything_in_order_and_says_what_is_not(settings: Settings) -> None:
    async with opened(settings) as service:
        await service.writer.index(DOCUMENTS, service.caller.scope)
    findings = await examine(settings)
    assert [finding for finding in findings if not finding.well] == []
    assert {"keyword", "keyword index", "keyword clock", "graph", "graph clock", "journal", "documents"} <= {
        finding.part for finding in findings
    }
    away = settings.model_copy(update={"graph": f"bolt://127.0.0.1:{free_port()}", "source_timeout_ms": 300})
    ill = {finding.part: finding for finding in await examine(away) if not finding.well}
    assert "cannot be reached" in ill["graph"].saw
    assert "TRIVIUM_GRAPH" in ill["graph"].advice


async def test_a_server_that_is_away_degrades_the_answer_and_gets_its_writes_later(settings: Settings) -> None:
    there = settings.graph
    away = settings.model_copy(update={"graph": f"bolt://127.0.0.1:{free_port()}", "source_timeout_ms": 500})
    async with opened(away) as service:
        done = await service.writer.index(DOCUMENTS, service.caller.scope)
        assert [name.rpartition(" ")[0] for name in done.missing] == [f"graph {away.graph}"]
        answer = await service.engine.search(
            SearchRequest(query="magicians", mode="hybrid", timeout_ms=20_000), service.caller, "t"
        )
        assert answer.hits[0].id == "prestige"
        assert [degraded.source for degraded in answer.degraded] == ["graph"]
        with pytest.raises(AllSourcesFailed, match="graph: the graph server cannot be reached"):
            await service.engine.search(
                SearchRequest(query="magicians", mode="graph", timeout_ms=20_000), service.caller, "t"
            )
        health = await service.health()
        assert (health["vector"], health["keyword"]) == ("ok", "ok")
        assert "cannot be reached" in health["graph"]
    async with opened(settings.model_copy(update={"graph": there})) as service:
        # Another address is another store: it has no cursor yet, so it is given all that the journal still holds.
        await service.replay()  # as `trivium serve` does from its start on
        assert sorted(await ids(service, "The Prestige", mode="graph")) == ["nolan", "prestige"]


async def test_an_index_of_another_version_is_told_in_every_answer_or_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(settings) as service:
        await service.writer.index(DOCUMENTS, service.caller.scope)
    from orchestrator.wiring import backends

    monkeypatch.setattr(backends, "_SERVER_RECIPE", 999)
    async with opened(settings) as service:
        answer = await service.engine.search(
            SearchRequest(query="The Prestige", timeout_ms=20_000), service.caller, "t"
        )
        assert {hit.id for hit in answer.hits[:2]} == {"nolan", "prestige"}
        assert {degraded.source for degraded in answer.degraded} == {"keyword", "graph"}
        assert all("index again under another TRIVIUM_INDEX_NAME" in degraded.reason for degraded in answer.degraded)
        told = await service.writer.index(DOCUMENTS, service.caller.scope)
        assert len(told.missing) == 2  # it waits in the journal, and goes into no index of another version
    with pytest.raises(VersionMismatch, match="index again under another TRIVIUM_INDEX_NAME"):
        async with opened(settings.model_copy(update={"strict_index": True})):
            pass
