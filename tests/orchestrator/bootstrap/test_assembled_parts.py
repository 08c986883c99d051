"""Single functions of the assembly: what they make of the settings, to the last argument."""

from __future__ import annotations

import hashlib
import subprocess
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from adapters import Document, Link, Scope, Viewer
from adapters.embedded import MIN_FIT_DOCUMENTS, EmbeddedSources
from adapters.encoders.static_fit import MAX_DOCUMENTS, fit
from adapters.model.sources import GRAPH, VECTOR
from adapters.ports import SourceQuery
from orchestrator.auth.visibility import access_filter
from orchestrator.bootstrap import background, open_service, rerankers
from orchestrator.bootstrap.caches import content_ids
from orchestrator.bootstrap.sources import Backends, SourceBinding, add_embedded, build_formats, search_probes
from orchestrator.schema.search import ResponseBody
from orchestrator.settings import Settings
from orchestrator.settings.loading import environment_of
from tests.orchestrator.bootstrap.helpers import index
from tests.orchestrator.services import RecordingSource, StalledSource

pytestmark = pytest.mark.anyio


def test_the_format_of_a_source_is_that_of_its_component_or_of_the_adapter_of_its_server() -> None:
    formats = {"vector": "v-1", "keyword": "k-2", "graph": "g-3"}
    assert list(build_formats(Settings(), formats)) == ["v-1", "k-2", "g-3"]
    settings = Settings.of(
        vector="qdrant+grpc://host:6334", graph="bolt+s://host:7687", keyword="opensearch+http://h:9200"
    )
    schemes = [each.rpartition("-") for each in build_formats(settings, formats)]
    assert [scheme for scheme, _, _ in schemes] == ["qdrant", "opensearch", "bolt"]
    assert len({number for _, _, number in schemes}) == 1
    assert schemes[0][2].isdecimal()


async def test_a_probe_searches_for_one_public_document_of_the_scope_with_a_unit_vector() -> None:
    source = RecordingSource(StalledSource())
    titles = SimpleNamespace(name="titles")
    on_server = SourceBinding(VECTOR, source, SimpleNamespace())  # type: ignore[arg-type]
    backends = Backends({"titles": SourceBinding(titles, source), "vector": on_server})  # type: ignore[arg-type]
    scope = Scope("t", "e")
    (probe,) = search_probes(backends, scope, 4).values()
    coroutine: Any = probe()
    coroutine.send(None)
    coroutine.close()
    (query,) = source.queries
    visible = access_filter(scope, Viewer("public"))
    assert query.vector is not None
    assert (query.vector.dtype, query.vector.tolist()) == (np.float32, [0.5] * 4)
    assert msgspec.structs.replace(query, vector=None) == SourceQuery("health", 1, scope, visible, visible)


@pytest.mark.parametrize(("url", "is_embedded"), [("embedded://", True), ("bolt://host:7687", False)])
def test_embedded_sources_never_wait_and_the_engine_has_the_documents(url: str, is_embedded: bool) -> None:
    graph, entities = object(), object()
    vector = object()
    retrievers = [(VECTOR, vector, None), (GRAPH, graph, entities)]
    readers = {"centralities": "c", "link_strengths": "l", "neighborhoods": "n"}
    engine = SimpleNamespace(retrievers=lambda: retrievers, replica="r", **readers)
    backends = Backends(documents="server")  # type: ignore[arg-type]
    add_embedded(backends, Settings.of(graph=url), engine)  # type: ignore[arg-type]
    assert [binding.immediate for binding in backends.bindings.values()] == [vector, graph]
    assert backends.bindings["graph"].entities is entities
    assert (backends.documents, backends.documents_replica, backends.replicas) == (None, "embedded", {"embedded": "r"})
    expected = ("c", "l", "n") if is_embedded else (None, None, None)
    assert (backends.centralities, backends.link_strengths, backends.neighborhoods) == expected


def test_measuring_is_a_process_group_of_its_own_that_neither_reads_nor_writes(
    python: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stopped process that shared the terminal would stop the service with it."""
    called: dict[str, Any] = {}
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: called.update(command=command, **options))
    monkeypatch.setenv("UNRELATED", "stays")
    settings = Settings.of(data_dir=tmp_path)
    background._start_measuring(settings)
    environment = called.pop("env")
    assert environment["UNRELATED"] == "stays"
    assert environment.items() >= environment_of(settings).items()
    nothing = subprocess.DEVNULL
    assert called == {
        "command": (python, "-m", "orchestrator", "tidy", "--measure"),
        "stdin": nothing,
        "stdout": nothing,
        "stderr": nothing,
        "process_group": 0,
    }


@pytest.mark.parametrize(
    ("documents", "fitted", "expected"),
    [
        (MIN_FIT_DOCUMENTS - 1, None, False),
        (MIN_FIT_DOCUMENTS, None, True),
        (1_000, 500, False),
        (1_001, 500, True),
        (1_000, 400, True),
        (10 * MAX_DOCUMENTS, MAX_DOCUMENTS // 2, False),
        (MIN_FIT_DOCUMENTS - 1, 10, False),
    ],
)
def test_a_static_encoder_is_outdated_when_there_are_twice_as_many_documents(
    documents: int, fitted: int | None, expected: bool
) -> None:
    engine = EmbeddedSources.__new__(EmbeddedSources)
    engine._fit = fit  # type: ignore[assignment]
    engine.documents = lambda: documents  # type: ignore[method-assign]
    encoder = None if fitted is None else SimpleNamespace(documents=fitted)
    engine._static_encoder = SimpleNamespace(encoder=encoder)  # type: ignore[assignment]
    assert engine.static_encoder_outdated() is expected


async def test_other_strengths_of_links_are_applied_by_maintenance_and_reported(tmp_path: Path) -> None:
    settings = Settings.of(data_dir=tmp_path)
    records = [Document(id="a", text="one", links=(Link("b", "cites"),)), Document(id="b", text="two")]
    reasons, steps = [], []
    for chosen in (settings, settings.changed(link_strengths={"cites": (0.5, 0.0)})):
        async with open_service(chosen) as service:
            if chosen is settings:
                await index(service, records)
            await service.maintenance.optimize(steps.append)
            findings = await service.health.examine()
        reasons += [each.observation for each in findings if each.subject == "links cites"]
    assert steps == [
        "pagerank",
        "graph trust",
        "confidence",
        "strengths of links",
        "pagerank",
        "graph trust",
        "confidence",
    ]
    assert reasons == [
        "followed 100% to the target, 100% to the source: no hierarchy",
        "followed 50% to the target, 0% to the source: as set",
    ]


async def test_the_reranker_is_opened_as_the_settings_say_and_closed_with_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed = []

    async def close() -> None:
        closed.append(True)

    opened: list[tuple[object, ...]] = []

    def reranker(*arguments: object) -> tuple[object, object]:
        opened.append(arguments)
        return "opened", close

    monkeypatch.setattr(rerankers, "reranker", reranker)
    url = "rerank+http://127.0.0.1/v1"
    settings = Settings.of(reranker=url, reranker_model="m", reranker_api_key="secret", rerank_timeout_ms=60_000)
    async with AsyncExitStack() as stack:
        rerankers.open_reranker(settings, stack)
        assert not closed
    assert (opened, closed) == ([(url, "m", "secret", 60.0)], [True])


def test_the_release_and_the_format_of_responses_are_in_every_key() -> None:
    schema = msgspec.json.encode(msgspec.json.schema(ResponseBody))
    assert content_ids(Settings())[:2] == (version("trivium"), hashlib.sha256(schema).hexdigest())


def test_waiting_writes_are_applied_at_the_interval_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    repeated: list[tuple[object, ...]] = []
    monkeypatch.setattr(background, "repeat", lambda *arguments: repeated.append(arguments))
    maintenance, upkeep = SimpleNamespace(refresh="refresh", apply_unapplied="apply"), SimpleNamespace(check="check")
    settings = Settings.of(replication_retry_ms=60_000, upkeep_interval_s=5).writes
    counts = SimpleNamespace(check="count")
    background.background_tasks(settings, maintenance, upkeep, None, counts, None)  # type: ignore[arg-type]
    assert repeated == [
        ("apply", 60.0, "applying waiting writes"),
        ("count", 60.0, "counting the documents of each replica"),
        ("check", 2.0, "upkeep"),
    ]
