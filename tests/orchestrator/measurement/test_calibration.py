"""The calibration of confidence, and what ``min_confidence`` does with it."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator

import pytest

from adapters import Scope
from orchestrator.auth.principal import Principal
from orchestrator.bootstrap import open_service
from orchestrator.indexing.ndjson import parse_ndjson
from orchestrator.measurement.calibration import CALIBRATION_FILE, ConfidenceCalibrations
from orchestrator.measurement.unanswerable import unanswerable_queries
from orchestrator.schema.search import SearchRequest, SearchResponse
from orchestrator.service.service import Service
from orchestrator.settings import Settings

pytestmark = pytest.mark.anyio

RIVERS = ("Danube", "Rhine", "Loire", "Ebro", "Vistula", "Elbe", "Douro", "Tagus", "Garonne", "Meuse", "Oder", "Rhone")
SENTENCES = (
    "The {0} rises in the mountains and is fed by melting snow in spring.",
    "Barges carry grain and gravel on the lower {0} to the harbour.",
    "Sturgeon and salmon have returned to the {0} since the dams were opened.",
    "After heavy rain the {0} floods its meadows and the villages on its banks.",
    "Bridges over the {0} were rebuilt after the ice had carried them away.",
)
ANSWERABLE = (
    "Where does the Danube rise?",
    "fish that returned to the Loire",
    "which goods do barges carry on the Elbe",
)
NONSENSE = ("How do I configure a printer driver?", "mortgage zebra violin hormone", "Wer gewann das Schachturnier?")


@pytest.fixture
async def service(chosen: Settings) -> AsyncIterator[Service]:
    lines = [
        json.dumps({"id": f"{river}-{number}", "title": river, "text": sentence.format(river)}).encode()
        for river in RIVERS
        for number, sentence in enumerate(SENTENCES)
    ]
    async with open_service(chosen) as service:
        report = await service.documents.index(
            parse_ndjson(io.BytesIO(b"\n".join(lines))), service.anonymous, lambda _: None
        )
        assert report.indexed == len(RIVERS) * len(SENTENCES)
        yield service


async def search(service: Service, query: str, principal: Principal | None = None, **fields: object) -> SearchResponse:
    request = SearchRequest(query=query, timeout_ms=30_000, **fields)  # type: ignore[arg-type]
    return await service.search.search(request, principal or service.anonymous, "r")


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
async def test_a_question_without_an_answer_has_no_hits_and_one_with_keeps_them(service: Service, mode: str) -> None:
    await service.maintenance.optimize(lambda _: None)
    for query in ANSWERABLE:
        response = await search(service, query, mode=mode, min_confidence=0.5)
        assert response.hits, query
        assert response.confidence
        assert response.confidence >= 0.5
        assert all(hit.confidence is not None and hit.confidence <= response.confidence for hit in response.hits)
        assert response.hits == (await search(service, query, mode=mode)).hits
    for query in NONSENSE:
        response = await search(service, query, mode=mode, min_confidence=0.5, explain=True)
        assert response.hits == (), query
        assert response.confidence is not None
        assert response.confidence < 0.5
        assert response.next_cursor is None
        assert response.explain
        assert response.explain.removed.min_confidence > 0
        # The fusion score of the best hit is high all the same, so that min_score cannot do this.
        assert (await search(service, query, mode="vector", min_score=0.9)).hits


async def test_before_it_is_measured_the_confidence_is_null_and_a_minimum_is_reported(service: Service) -> None:
    response = await search(service, NONSENSE[0], mode="hybrid")
    assert response.hits
    assert response.confidence is None
    assert response.hits[0].confidence is None
    assert not response.degraded
    required = await search(service, NONSENSE[0], mode="hybrid", min_confidence=0.5)
    assert required.hits
    assert [(each.source, each.reason) for each in required.degraded] == [
        ("confidence", "not measured yet: run `trivium tidy`, with at least 50 documents")
    ]


async def test_the_setting_is_the_default_of_requests(service: Service) -> None:
    await service.maintenance.optimize(lambda _: None)
    service.search.settings = service.search.settings.changed(min_confidence=0.5)
    assert not (await search(service, NONSENSE[0], mode="hybrid")).hits
    assert (await search(service, NONSENSE[0], mode="hybrid", min_confidence=0.0)).hits


async def test_a_scope_with_few_documents_is_not_measured_and_no_other_scope_decides(
    service: Service, chosen: Settings
) -> None:
    await service.maintenance.optimize(lambda _: None)
    calibrations = ConfidenceCalibrations(chosen.storage.data_dir / CALIBRATION_FILE)
    assert calibrations.generation == 1
    assert [name for name, _ in calibrations.calibrations(service.anonymous.scope, "normal", "model")] == [
        "graph",
        "graph+keyword",
        "graph+keyword+vector",
        "graph+vector",
        "keyword",
        "keyword+vector",
        "vector",
    ]
    assert calibrations.calibrations(Scope("other"), "normal", "model") == ()


async def test_another_encoder_of_queries_is_calibrated_without_writes(service: Service, chosen: Settings) -> None:
    await service.maintenance.optimize(lambda _: None)
    assert not service.maintenance.outdated()
    async with open_service(chosen.changed(query_encoder="static")) as other:
        assert other.maintenance.calibration_outdated()
        await other.maintenance.measure(lambda _: None)
        assert not other.maintenance.outdated()
        assert other.maintenance.calibrations.calibrations(service.anonymous.scope, "normal", "static")


async def test_a_new_calibration_is_used_at_once_and_another_key_in_the_cache(service: Service) -> None:
    request = SearchRequest(query=NONSENSE[0], mode="hybrid", timeout_ms=30_000, min_confidence=0.5)
    _, before = service.search.plan(request, service.anonymous)
    await service.maintenance.optimize(lambda _: None)
    plan, after = service.search.plan(request, service.anonymous)
    assert before != after
    assert plan.ranking.calibrations


def test_the_queries_without_an_answer_are_the_same_every_time_and_distinct() -> None:
    queries = unanswerable_queries()
    assert queries == unanswerable_queries()
    assert len(set(queries)) == len(queries) > 200
