"""A source that exists in this test only: every part of the service works with it, and no code names it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

import adapters
import cache
import fusion
import orchestrator
from adapters import Document, Unavailable
from adapters.model.filter import matches
from adapters.model.sources import SOURCES
from adapters.ports import SourceQuery
from fusion.columns import Ranking
from fusion.source import Source
from orchestrator.bootstrap import open_service
from orchestrator.bootstrap.sources import SourceBinding
from orchestrator.cli import maintain
from orchestrator.evaluation.dataset import read_dataset
from orchestrator.evaluation.judged_runs import as_runs, evaluate, measure_runs
from orchestrator.evaluation.report import write_report
from orchestrator.evaluation.runner import collect, run_shard
from orchestrator.evaluation.runs import RUNS
from orchestrator.evaluation.workspace import Workspace
from orchestrator.execution.stage_results import AllSourcesFailed
from orchestrator.indexing.ndjson import ValidLine
from orchestrator.planning.errors import BadRequest
from orchestrator.schema.search import SearchRequest, SearchResponse
from orchestrator.service.health import Finding
from orchestrator.service.service import Service
from orchestrator.settings import Settings

pytestmark = pytest.mark.anyio

NAME = "titles"
TITLES = Source(NAME, exponent=1.0, fallback_priority=4)


class TitleSource:
    """Documents whose id occurs in the query as a word, by the order of the words; or an error."""

    def __init__(self) -> None:
        self.ids: tuple[str, ...] = ()
        self.error: Exception | None = None
        self.queries: list[SourceQuery] = []

    async def search(self, query: SourceQuery) -> Ranking:
        self.queries.append(query)
        if self.error:
            raise self.error
        words = re.findall(r"\w+", query.text.lower())
        found = [word for word in dict.fromkeys(words) if word in self.ids and self._passes(query)]
        return Ranking.of_ids(NAME, found, [1 / rank for rank in range(1, len(found) + 1)])

    def _passes(self, query: SourceQuery) -> bool:
        """All documents of these tests have the same fields."""
        scope = {"tenant": (query.scope.tenant,), "environment": (query.scope.environment,)}
        return matches(query.filter, scope | {"sensitivity": ("normal",), "collection": ("documents",)})


@pytest.fixture
def titles() -> TitleSource:
    return TitleSource()


def opened(settings: Settings, titles: TitleSource) -> AbstractAsyncContextManager[Service]:
    return open_service(settings, more_sources=[SourceBinding(TITLES, titles)])


DOCUMENTS = {
    "otter": "A mammal that swims in rivers",
    "falcon": "A bird that is faster than all others",
    "granite": "A hard rock for buildings",
    "violin": "An instrument with four strings",
}


@pytest.fixture
async def service(chosen: Settings, titles: TitleSource) -> AsyncIterator[Service]:
    async with opened(chosen, titles) as service:
        titles.ids = tuple(DOCUMENTS)
        lines = [
            ValidLine(number, Document(id=id_, text=text)) for number, (id_, text) in enumerate(DOCUMENTS.items(), 1)
        ]
        await service.documents.index(lines, service.anonymous, on_invalid=lambda line: pytest.fail(line.error))
        yield service


async def search(service: Service, query: str, **fields: object) -> SearchResponse:
    request = SearchRequest(query=query, **{"timeout_ms": 60_000, **fields})  # type: ignore[arg-type]
    return await service.search.search(request, service.anonymous, "r")


@pytest.mark.parametrize("mode", ["auto", "hybrid"])
async def test_it_is_planned_and_searched_after_the_others(service: Service, titles: TitleSource, mode: str) -> None:
    response = await search(service, "the violin and the granite", mode=mode)
    assert response.route.sources == ("vector", "graph", "keyword", NAME)
    assert len(titles.queries) == 1
    assert titles.queries[0].scope == service.anonymous.scope
    assert response.degraded == ()
    assert NAME in response.timings_ms


async def test_its_name_is_a_mode_and_a_weight(service: Service, titles: TitleSource) -> None:
    response = await search(service, "the violin and the granite", mode=NAME)
    assert response.route.sources == (NAME,)
    assert [hit.id for hit in response.hits] == ["violin", "granite"]
    without = await search(service, "the violin", mode="hybrid", weights={NAME: 0})
    assert NAME not in without.route.sources
    with pytest.raises(BadRequest, match=f"allowed are auto, hybrid, vector, graph, keyword, {NAME}"):
        await search(service, "the violin", mode="best")


async def test_it_is_searched_once_for_each_collection(service: Service, titles: TitleSource) -> None:
    await search(service, "the violin", mode="hybrid", collections=("documents", "notes"))
    assert len(titles.queries) == 2


@pytest.mark.parametrize(
    "fusion_", ["rrf(k=60)", "joint_walk", "relative_score()", "dbsf()", "weighted_sum()", "concatenate()"]
)
async def test_it_is_fused_by_every_strategy(service: Service, fusion_: str) -> None:
    response = await search(service, "violin", mode="hybrid", fusion=fusion_)
    part = response.hits[0].sources[NAME]
    assert response.hits[0].id == "violin"
    assert part
    assert (part.rank, part.score, part.weight) == (1, 1.0, 1.0)
    assert part.contribution > 0 or fusion_ == "concatenate()"
    assert all(NAME in hit.sources for hit in response.hits)


async def test_its_contribution_is_that_of_the_formula(service: Service) -> None:
    """Rank 2 and weight 3 with ``rrf(k=60)``: 3 / (60 + 2)."""
    response = await search(
        service, "violin granite", mode="hybrid", fusion="rrf(k=60)", weights={NAME: 3.0}, explain=True
    )
    by_id = {hit.id: hit for hit in response.hits}
    part = by_id["granite"].sources[NAME]
    assert part
    assert part.contribution == 3 / (60 + 2)
    assert by_id["otter"].sources[NAME] is None


async def test_a_document_that_it_alone_found_is_a_hit(service: Service, titles: TitleSource) -> None:
    others = dict.fromkeys(("vector", "graph", "keyword"), 0.001)
    response = await search(service, "otter", mode="hybrid", weights=others, fusion="rrf(k=60)", limit=1)
    assert [hit.id for hit in response.hits] == ["otter"]


async def test_it_is_explained(service: Service) -> None:
    response = await search(service, "violin granite", mode="hybrid", explain=True)
    assert response.explain
    assert [(hit.id, hit.rank, hit.score) for hit in response.explain.rankings[NAME]] == [
        ("violin", 1, 1.0),
        ("granite", 2, 0.5),
    ]
    assert response.explain.weights[NAME] == 1.0


async def test_its_failure_is_reported_and_its_circuit_opens(service: Service, titles: TitleSource) -> None:
    titles.error = Unavailable("connection refused")
    for _ in range(5):
        response = await search(service, "violin", mode="hybrid")
        assert [(each.source, each.reason) for each in response.degraded] == [(NAME, "connection refused")]
        assert {hit.id for hit in response.hits} == set(DOCUMENTS)
        assert response.hits[0].sources[NAME] is None
    skipped = await search(service, "violin", mode="hybrid")
    assert [each.source for each in skipped.degraded] == [NAME]
    assert "circuit open" in skipped.degraded[0].reason
    assert len(titles.queries) == 5
    with pytest.raises(AllSourcesFailed, match=NAME):
        await search(service, "violin", mode=NAME)


async def test_its_rankings_are_memoized(service: Service, titles: TitleSource) -> None:
    await search(service, "violin", mode="hybrid")
    await search(service, "violin", mode="hybrid", limit=2)
    assert len(titles.queries) == 1
    assert NAME in service.cache_report().levels


async def test_a_document_that_it_returns_against_the_filter_is_withheld(service: Service, titles: TitleSource) -> None:
    titles.ids = ("otter", "elsewhere")
    secret = Document(id="elsewhere", text="A secret", sensitivity="restricted")
    records = await service.documents.lines.pipeline.prepare([secret], service.anonymous.scope)
    await service.documents.lines.writer.write(records, ())
    response = await search(service, "elsewhere otter", mode=NAME, explain=True)
    assert [hit.id for hit in response.hits] == ["otter"]
    assert response.explain
    assert response.explain.removed.withheld == 1
    assert [hit.id for hit in response.explain.rankings[NAME]] == ["otter"]


async def findings_of(service: Service) -> list[Finding]:
    return [finding for finding in await service.health.examine() if finding.subject == NAME]


async def test_doctor_and_readyz_show_it(service: Service, titles: TitleSource) -> None:
    assert await findings_of(service) == [Finding(NAME, True, "can be searched")]
    states = await service.health.by_source()
    assert list(states) == ["vector", "graph", "keyword", NAME]
    assert states[NAME] == "ok"


@pytest.mark.parametrize(
    ("error", "reason"), [(Unavailable("connection refused"), "connection refused"), (KeyError("x"), "internal error")]
)
async def test_doctor_and_readyz_show_what_is_wrong_with_it(
    service: Service, titles: TitleSource, error: Exception, reason: str
) -> None:
    titles.error = error
    (finding,) = await findings_of(service)
    assert (finding.is_well, finding.observation) == (False, reason)
    assert finding.advice
    assert (await service.health.by_source())[NAME] == reason


def test_the_command_doctor_prints_it(chosen: Settings, titles: TitleSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.cli.terminal.open_service", lambda settings, **named: opened(settings, titles))
    assert Finding(NAME, True, "can be searched") in maintain.examine(chosen)


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "beir"
    folder.mkdir()
    corpus = [{"_id": id_, "title": "", "text": text} for id_, text in DOCUMENTS.items()]
    queries = [{"_id": f"q-{id_}", "text": f"the {id_} and its use"} for id_ in DOCUMENTS]
    judged = [f"q-{id_}\t{id_}\t1" for id_ in DOCUMENTS]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(each) + "\n" for each in corpus))
    (folder / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in queries))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judged) + "\n")
    return folder


async def test_it_is_evaluated(chosen: Settings, titles: TitleSource, beir: Path, tmp_path: Path) -> None:
    """It takes part in each run of all sources, with its ranks; a run of one source or of two leaves it out."""
    titles.ids = tuple(DOCUMENTS)

    def open_with_titles(settings: Settings) -> AbstractAsyncContextManager[Service]:
        return opened(settings, titles)

    dataset = read_dataset(beir)
    workspace = Workspace.of(chosen, dataset)
    indexed = await workspace.index(open_with_titles, lambda _: None)
    store = workspace.results(indexed.build_id)
    await run_shard(open_with_titles, workspace, store, 0, 1, lambda _: None)
    results = collect(workspace, store)

    for run in RUNS:
        for id_ in DOCUMENTS:
            result = results[run][f"q-{id_}"]
            searches_all = run.startswith(("hybrid", "profile", "auto"))
            assert (NAME in result.sources) is searches_all, run
            ranks = {hit.id: hit.ranks.get(NAME) for hit in result.hits}
            assert ranks.get(id_) == (1 if searches_all else None), run
    by_run = measure_runs(as_runs(results, dataset), dataset)
    conditions = workspace.conditions(indexed.documents)
    evaluation = evaluate(dataset, by_run, results, conditions, dict.fromkeys(DOCUMENTS, ""))
    assert evaluation.sources_per_query["hybrid"] == len(SOURCES) + 1
    assert evaluation.sources_per_query["vector+keyword"] == 2
    write_report(tmp_path / "report.html", evaluation, dataset, by_run, results, {})


def test_no_code_names_it() -> None:
    packages = (adapters, cache, fusion, orchestrator)
    files = [file for package in packages for file in Path(package.__path__[0]).rglob("*.py")]
    assert len(files) > 100
    naming = [file for file in files if re.search(rf"[\"']{NAME}[\"']", file.read_text("utf-8"))]
    assert naming == []
