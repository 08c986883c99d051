"""Nothing crosses a tenant, environment, clearance or visibility: 10,000 random requests, in every mode, to every path.

Each document has a mark of its own in every field. Every response is searched for marks: a mark that its principal may
not see is a leak, wherever in the response it is.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
import pytest
from mcp.client import Client

from adapters import SENSITIVITIES, Document, Link, Scope, Sensitivity
from adapters.model.document import rank_fields
from adapters.model.filter import And, In
from adapters.model.protection import Protection
from adapters.ports import SourceQuery
from fusion.columns import Documents, Ranking
from orchestrator.auth.principal import Principal, anonymous_operator
from orchestrator.bootstrap import open_service
from orchestrator.http.app import create_app
from orchestrator.http.metrics import ServiceMetrics
from orchestrator.indexing.ndjson import ValidLine
from orchestrator.mcp.caller import Caller
from orchestrator.mcp.server import tool_server
from orchestrator.retrieval.circuit_breakers import CircuitBreakers
from orchestrator.retrieval.collections import CollectionSplitter
from orchestrator.retrieval.memo import Memo, MemoizedRetriever
from orchestrator.retrieval.retrieve import Retrieval
from orchestrator.retrieval.source_call import SourceCall
from orchestrator.service.admission import Admission
from orchestrator.service.service import Service
from orchestrator.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

REQUESTS = 10_000
REQUESTS_TO_UNFILTERED = 1_000
CALLS = 2_400
"""Of tools, over MCP."""
CALLERS = 4
"""Requests at a time: none may get what another one sees."""
SCOPES = [Scope(tenant, environment) for tenant, environment in product(("acme", "bolt", "acm"), ("prod", "dev"))]
NAMES = ["Alpha Centauri", "Betelgeuse", "Cassiopeia", "Deneb", "Epsilon Eridani"]
WORDS = ["star", "planet", "orbit", "light", "dust", "probe", "signal"]
COLLECTIONS = ["documents", "memory", "artifacts", "artifact_chunks"]
MARK = re.compile(r"zq\d+zq")


@dataclass(frozen=True)
class World:
    """A service with documents of every scope, sensitivity and visibility.

    :param owners: by mark, the scope and the protection of its document.
    :param ids: of all documents.
    """

    service: Service
    owners: dict[str, tuple[Scope, Protection]]
    ids: list[str]

    def is_visible(self, mark: str, principal: Principal) -> bool:
        scope, document = self.owners[mark]
        is_cleared = SENSITIVITIES.index(document.sensitivity) <= SENSITIVITIES.index(principal.clearance)
        is_shared = document.visibility == "tenant" or principal.user in {None, document.owner}
        is_of_team = document.visibility == "team" and document.team in principal.teams
        return scope == principal.scope and is_cleared and (is_shared or is_of_team)

    def leaked(self, response: str, request: str, principal: Principal) -> list[str]:
        """Marks in a response that the principal may not see; those of its own request are no leak."""
        marks = set(MARK.findall(response)) - set(MARK.findall(request))
        return [mark for mark in marks if not self.is_visible(mark, principal)]

    def client(self, principal: Principal) -> httpx.AsyncClient:
        """A client whose requests are those of this principal."""
        app = create_app(self.service.settings)
        app.state.service = replace(self.service, anonymous=principal)
        app.state.metrics, app.state.tracing = ServiceMetrics(app.state.service), None
        return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


def _document(dice: random.Random, number: int, sensitivity: Sensitivity) -> Document:
    mark = f"zq{number}zq"
    parent = f"whole{number % 9}"
    chunk = dice.random() < 0.5
    return Document(
        # Half of the ids are the same in every scope; half contain a mark.
        id=f"shared{number % 25}-{sensitivity}" if dice.random() < 0.5 else f"{mark}-id",
        title=dice.choice(NAMES) if dice.random() < 0.4 else f"On {mark}",
        text=f"{mark} {dice.choice(NAMES)} {' '.join(dice.choices(WORDS, k=6))} {dice.choice(NAMES)}",
        collection=dice.choice(COLLECTIONS),
        parent_id=parent if chunk else None,
        chunk_index=number % 5 if chunk else None,
        url=f"https://example.org/{mark}",
        importance=dice.choice([None, 0.0, 9.0]),
        sensitivity=sensitivity,
        **_sharing(dice),
        tags=(mark, dice.choice(WORDS)),
        metadata={"mark": mark, "size": number % 3},
        links=(Link(f"whole{dice.randrange(9)}", "about"),),
    )


def _sharing(dice: random.Random) -> dict[str, Any]:
    """A visibility, and what it needs. Half of the documents are for the whole tenant."""
    visibility = dice.choice(["tenant", "tenant", "team", "private"])
    return {"visibility": visibility, "owner": dice.choice(["alice", "bob"]), "team": dice.choice(["legal", "sales"])}


def _principals(clearances: Sequence[Sensitivity] = SENSITIVITIES) -> list[Principal]:
    """Of every scope and clearance, without a user and with each."""
    users: list[tuple[str | None, tuple[str, ...]]] = [(None, ()), ("alice", ()), ("bob", ("legal",))]
    return [
        anonymous_operator(scope, clearance, *user) for scope in SCOPES for clearance in clearances for user in users
    ]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory, model_dir: Path) -> AsyncIterator[World]:
    dice = random.Random(20261122)
    folder = tmp_path_factory.mktemp("closed")
    settings = Settings.of(data_dir=folder, model_dir=model_dir, source_timeout_ms=20_000, query_encoder="model")
    owners: dict[str, tuple[Scope, Protection]] = {}
    ids: set[str] = set()
    async with open_service(settings) as service:
        number = 0
        for scope in SCOPES:
            documents: dict[str, Document] = {}
            for sensitivity in SENSITIVITIES:
                for _ in range(20):
                    document = _document(dice, number, sensitivity)
                    documents[document.id] = document
                    number += 1
            for index in range(9):
                text = f"zq{number}zq {' '.join(NAMES)}"
                documents[f"whole{index}"] = Document(
                    id=f"whole{index}", text=text, sensitivity=SENSITIVITIES[index % 4], collection="artifacts"
                )
                number += 1
            owners |= {
                mark: (scope, each.protection) for each in documents.values() for mark in MARK.findall(each.text)
            }
            ids |= documents.keys()
            lines = [ValidLine(line, each) for line, each in enumerate(documents.values(), 1)]
            rejected: list[object] = []
            await service.documents.index(lines, anonymous_operator(scope, "restricted"), rejected.append)
            assert not rejected
        yield World(service, owners, sorted(ids))


def _random_filter(dice: random.Random, world: World) -> dict[str, object] | None:
    mark = dice.choice(list(world.owners))
    return dice.choice(
        [
            None,
            None,
            {"op": "eq", "field": "metadata.mark", "value": mark},
            {"op": "in", "field": "sensitivity", "values": ["restricted", "sensitive", "normal"]},
            {"op": "not", "filter": {"op": "eq", "field": "sensitivity", "value": "public"}},
            {"op": "or", "filters": [{"op": "and", "filters": []}, {"op": "exists", "field": "tags"}]},
            {"op": "in", "field": "id", "values": dice.choices(world.ids, k=5)},
            {"op": "in", "field": "visibility", "values": ["team", "private"]},
            {"op": "eq", "field": "owner", "value": dice.choice(["alice", "bob"])},
            {"op": "range", "field": "metadata.size", "gte": 1},
        ]
    )


def _random_search(dice: random.Random, world: World) -> dict[str, object]:
    mark = dice.choice(list(world.owners))
    words = " ".join(dice.choices(WORDS, k=2))
    query = dice.choice([dice.choice(NAMES), f"{words} {dice.choice(NAMES)}", f'"{mark}"', f"about {mark}", words])
    request: dict[str, object] = {
        "query": query,
        "mode": dice.choice(["auto", "hybrid", "vector", "graph", "keyword"]),
        "limit": dice.choice([1, 5, 50]),
        "collapse": dice.choice(["none", "parent", "window"]),
        "neighbors": dice.choice([0, 0, 1, 10]),
        "cache": dice.choice(["use", "refresh", "bypass"]),
        "fusion": dice.choice(["joint_walk", "rrf(k=60)", "dbsf()", "weighted_sum()", "concatenate()"]),
        "boosts": {name: True for name in ("centrality", "relationship") if dice.random() < 0.2},
        "explain": dice.random() < 0.3,
        "rerank": dice.random() < 0.1,
        "timeout_ms": 20_000,
    }
    if dice.random() < 0.5:
        request["collections"] = dice.sample(COLLECTIONS, dice.randint(1, 3))
    if (condition := _random_filter(dice, world)) is not None:
        request["filter"] = condition
    return request


async def _random_request(
    dice: random.Random, world: World, client: httpx.AsyncClient, cursors: list[tuple[Any, str]]
) -> tuple[str, str]:
    """The text of one random request, and everything that was returned."""
    kind = dice.random()
    if kind < 0.85:
        request = _random_search(dice, world)
        if dice.random() < 0.1:  # as a line of a batch, whose lines are computed together
            lines = [request, _random_search(dice, world)]
            content = b"\n".join(map(msgspec.json.encode, lines))
            response = await client.post("/v1/search/batch", content=content)
            assert [json.loads(line)["status"] for line in response.text.splitlines()] == [200, 200], response.text
            return str(lines), response.text + str(response.headers)
        response = await client.post("/v1/search", json=request)
        assert response.status_code == 200, response.text
        if (cursor := response.json()["next_cursor"]) and dice.random() < 0.1:
            cursors.append((request, cursor))
        return str(request), response.text + str(response.headers)
    if kind < 0.9 and cursors:  # of any principal: a cursor gives no access
        request, cursor = dice.choice(cursors)
        response = await client.post("/v1/search", json={**request, "cursor": cursor})
        assert response.status_code in {200, 422}
        return str(request), response.text
    if kind < 0.97:
        id_ = dice.choice(world.ids)
        response = await client.get(f"/v1/documents/{id_}")
        assert response.status_code in {200, 404}
        return id_, response.text
    if kind < 0.99:
        return "", (await client.get("/v1/collections")).text
    id_ = dice.choice(world.ids)
    if (await client.get(f"/v1/documents/{id_}")).status_code == 200:
        return id_, ""  # the principal may delete it, which is not what is tested here
    deleted = await client.delete(f"/v1/documents/{id_}")
    assert deleted.json()["deleted"] is False
    return id_, deleted.text


async def test_no_response_contains_what_its_principal_may_not_see(world: World) -> None:
    principals = _principals()
    clients = {principal: world.client(principal) for principal in principals}
    seen = 0

    async def call(dice: random.Random) -> None:
        nonlocal seen
        cursors: list[tuple[Any, str]] = []
        for _ in range(REQUESTS // CALLERS):
            principal = dice.choice(principals)
            request, response = await _random_request(dice, world, clients[principal], cursors)
            assert world.leaked(response, request, principal) == [], f"{principal} sent {request}"
            seen += len(MARK.findall(response))
        assert cursors

    before = await world.service.count()
    async with anyio.create_task_group() as callers:
        for seed in range(CALLERS):
            callers.start_soon(call, random.Random(seed))
    assert seen > REQUESTS  # responses do contain documents
    assert await world.service.count() == before


async def test_no_document_is_replaced_by_a_user_who_may_not_see_it(world: World) -> None:
    private = await world.service.documents.documents.find(In("visibility", ("private",)), 200)
    assert len(private) > 40
    for record in private[::20]:
        other = "bob" if record.document.owner == "alice" else "alice"
        scope = Scope(record.tenant, record.environment)
        principal = anonymous_operator(scope, "restricted", other, ("legal", "sales"))
        fields = {"id": record.document.id, "collection": record.document.collection, "text": "mine now"}
        response = await world.client(principal).post("/v1/documents", content=msgspec.json.encode(fields))
        assert (response.json()["rejected"], response.json()["indexed"]) == (1, 0)
        assert world.leaked(response.text, record.document.id, principal) == []


async def test_no_document_is_replaced_by_a_principal_that_may_not_see_it(world: World) -> None:
    restricted = await world.service.documents.documents.find(In("sensitivity", ("restricted",)), 100)
    assert len(restricted) > 20
    for record in restricted[::20]:
        principal = anonymous_operator(Scope(record.tenant, record.environment), "sensitive")
        fields = {"id": record.document.id, "collection": record.document.collection, "text": "mine now"}
        line = msgspec.json.encode(fields)
        response = await world.client(principal).post("/v1/documents", content=line)
        assert (response.json()["rejected"], response.json()["indexed"]) == (1, 0)
        assert world.leaked(response.text, record.document.id, principal) == []


def _random_call(dice: random.Random, world: World) -> tuple[str, dict[str, object]]:
    """A tool and its arguments."""
    request = _random_search(dice, world)
    arguments: dict[str, object] = {"query": request["query"], "limit": request["limit"]}
    if (condition := _random_filter(dice, world)) is not None:
        arguments["filters"] = condition
    kind = dice.random()
    if kind < 0.1:
        return "memory_search", arguments
    if kind < 0.7:
        if dice.random() < 0.5:
            arguments["collections"] = [*dice.sample(COLLECTIONS, 2), *dice.sample(["nothing"], dice.randint(0, 1))]
        arguments |= {"include_memory": dice.random() < 0.3, "expand_neighbors": dice.choice([0, 0, 3])}
        arguments |= {"structured": dice.random() < 0.1, "max_tokens": dice.choice([100, 4_000, 32_000])}
        return dice.choice(["hybrid_search", "explain_search"]), arguments
    if kind < 0.75:
        return "list_collections", {}
    return "get_document", {"id": dice.choice(world.ids)}


async def _calls_of_tools(world: World, count: int) -> int:
    """Call random tools as random principals. Returns the number of marks in the answers."""
    dice = random.Random(3)
    principals = _principals()
    seen = 0
    for principal in principals:
        server = tool_server(lambda _, principal=principal: Caller(world.service, principal, "closed"))
        async with Client(server) as agent:
            for _ in range(count // len(principals)):
                tool, arguments = _random_call(dice, world)
                answer = (await agent.call_tool(tool, arguments)).model_dump_json()
                assert world.leaked(answer, str(arguments), principal) == [], f"{principal} called {tool}({arguments})"
                seen += len(MARK.findall(answer))
    return seen


async def test_no_answer_of_a_tool_contains_what_its_principal_may_not_see(world: World) -> None:
    assert await _calls_of_tools(world, CALLS) > CALLS


async def test_the_access_check_protects_the_answers_of_tools(world: World) -> None:
    assert await _calls_of_tools(_with_unfiltered_sources(world), CALLS // 10) > 0


class _Unfiltered:
    """A source that returns documents of every scope and protection, whatever the filter of a query."""

    def __init__(self, source: str, world: World) -> None:
        self._source = source
        self._world = world

    async def search(self, query: SourceQuery) -> Ranking:
        documents = self._world.service.documents.documents
        identities = sorted({record.doc_id for record in await documents.find(And(()), 10_000)})
        stored = await documents.fetch(query.scope, Documents.of_ids(identities))
        dice = random.Random(query.text)
        ids = tuple(dice.sample(identities, len(identities)))  # those of other scopes, too
        fields = {id_: each for id_ in ids if id_ in stored and (each := rank_fields(stored[id_].document))}
        return Ranking.of_ids(self._source, ids, tuple(1.0 / (n + 1) for n in range(len(ids))), fields=fields)


def _with_unfiltered_sources(world: World) -> World:
    """The same documents behind sources that ignore their filters."""
    search = world.service.search
    embedded = world.service.health.embedded
    calls = {}
    for source, _, entities in embedded.retrievers():  # type: ignore[union-attr]
        memo: Memo[Ranking] = Memo(60.0, lambda: 0.0)
        retriever = MemoizedRetriever(_Unfiltered(source.name, world), memo, search.data_versions.current)
        calls[source.name] = SourceCall(source, retriever, entities)
    collections = CollectionSplitter(Memo(60.0, lambda: 0.0))
    retrieval = Retrieval(calls, search.retrieval.preparation, CircuitBreakers(5, 1.0, 20.0), collections)
    broken = replace(search, retrieval=retrieval, admission=Admission(4, 100))
    return replace(world, service=replace(world.service, search=broken))


async def test_the_access_check_after_retrieval_catches_a_source_that_ignores_its_filter(world: World) -> None:
    dice = random.Random(2)
    broken = _with_unfiltered_sources(world)
    principals = _principals(SENSITIVITIES[:-1])
    clients = {principal: broken.client(principal) for principal in principals}
    withheld = 0
    for _ in range(REQUESTS_TO_UNFILTERED):
        principal = dice.choice(principals)
        request = _random_search(dice, world) | {"explain": True, "cache": "bypass"}
        response = await clients[principal].post("/v1/search", json=request)
        assert response.status_code == 200
        assert world.leaked(response.text, str(request), principal) == []
        withheld += response.json()["explain"]["removed"]["withheld"]
    assert withheld > REQUESTS_TO_UNFILTERED
