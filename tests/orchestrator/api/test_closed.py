"""Nothing crosses a tenant, an environment or a clearance: 10,000 random requests, by every mode and endpoint.

Each document says in every field that it has a mark of its own. Whatever leaves the API is searched for marks: one
that its caller may not see is a leak, wherever in the answer it stands.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from adapters import SENSITIVITIES, Document, Link, Query, Scope, Sensitivity
from adapters.document import facts
from adapters.filter import In
from fusion import Ranking
from orchestrator.admission import Admission
from orchestrator.answers import Answers
from orchestrator.api.app import create
from orchestrator.breakers import Breakers
from orchestrator.caller import Caller
from orchestrator.roads import Roads
from orchestrator.settings import Settings
from orchestrator.wiring import Service, opened

pytestmark = pytest.mark.anyio

REQUESTS = 10_000
FORGETFUL = 1_000
SCOPES = [Scope(tenant, environment) for tenant, environment in product(("acme", "bolt", "acm"), ("prod", "dev"))]
NAMES = ["Alpha Centauri", "Betelgeuse", "Cassiopeia", "Deneb", "Epsilon Eridani"]
WORDS = ["star", "planet", "orbit", "light", "dust", "probe", "signal"]
COLLECTIONS = ["documents", "memory", "artifacts", "artifact_chunks"]
MARK = re.compile(r"zq\d+zq")


@dataclass(frozen=True)
class World:
    """All documents, whose they are, and the service that holds them."""

    service: Service
    owners: dict[str, tuple[Scope, Sensitivity]]
    ids: list[str]

    def visible(self, mark: str, caller: Caller) -> bool:
        scope, sensitivity = self.owners[mark]
        return scope == caller.scope and SENSITIVITIES.index(sensitivity) <= SENSITIVITIES.index(caller.clearance)

    def leaked(self, told: str, asked: str, caller: Caller) -> list[str]:
        """Marks in ``told`` that the caller may not see; those of its own question are its own."""
        return [mark for mark in set(MARK.findall(told)) - set(MARK.findall(asked)) if not self.visible(mark, caller)]

    def api(self, caller: Caller) -> httpx.AsyncClient:
        """The API as this caller has it."""
        scope = {"tenant": caller.scope.tenant, "environment": caller.scope.environment}
        settings = self.service.settings.model_copy(update={**scope, "open_clearance": caller.clearance})
        app = create(settings)
        app.state.service = replace(self.service, settings=settings)
        return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


def _document(dice: random.Random, number: int, sensitivity: Sensitivity) -> Document:
    mark = f"zq{number}zq"
    parent = f"whole{number % 9}"
    chunk = dice.random() < 0.5
    return Document(
        # Half of the ids are the same in every scope; half are marked.
        id=f"shared{number % 25}-{sensitivity}" if dice.random() < 0.5 else f"{mark}-id",
        title=dice.choice(NAMES) if dice.random() < 0.4 else f"On {mark}",
        text=f"{mark} {dice.choice(NAMES)} {' '.join(dice.choices(WORDS, k=6))} {dice.choice(NAMES)}",
        collection=dice.choice(COLLECTIONS),
        parent_id=parent if chunk else None,
        chunk_index=number % 5 if chunk else None,
        url=f"https://example.org/{mark}",
        importance=dice.choice([None, 0.0, 9.0]),
        sensitivity=sensitivity,
        tags=(mark, dice.choice(WORDS)),
        metadata={"mark": mark, "size": number % 3},
        links=(Link(f"whole{dice.randrange(9)}", "about"),),
    )


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory, model_dir: Path) -> AsyncIterator[World]:
    dice = random.Random(20261122)
    folder = tmp_path_factory.mktemp("closed")
    settings = Settings(data_dir=folder, model_dir=model_dir, source_timeout_ms=20_000, query_encoder="model")
    owners: dict[str, tuple[Scope, Sensitivity]] = {}
    ids: set[str] = set()
    async with opened(settings) as service:
        number = 0
        for scope in SCOPES:
            made: dict[str, Document] = {}
            for sensitivity in SENSITIVITIES:
                for _ in range(20):
                    document = _document(dice, number, sensitivity)
                    made[document.id] = document
                    number += 1
            for place in range(9):
                mark = f"zq{number}zq"
                guarded = SENSITIVITIES[place % 4]
                made[f"whole{place}"] = Document(
                    id=f"whole{place}", text=f"{mark} {' '.join(NAMES)}", sensitivity=guarded, collection="artifacts"
                )
                number += 1
            owners |= {mark: (scope, each.sensitivity) for each in made.values() for mark in MARK.findall(each.text)}
            ids |= made.keys()
            await service.writer.index(made.values(), scope)
        yield World(service, owners, sorted(ids))


def _filter(dice: random.Random, world: World) -> dict[str, object] | None:
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
            {"op": "range", "field": "metadata.size", "gte": 1},
        ]
    )


def _search(dice: random.Random, world: World) -> dict[str, object]:
    mark = dice.choice(list(world.owners))
    words = " ".join(dice.choices(WORDS, k=2))
    query = dice.choice([dice.choice(NAMES), f"{words} {dice.choice(NAMES)}", f'"{mark}"', f"about {mark}", words])
    asked: dict[str, object] = {
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
        asked["collections"] = dice.sample(COLLECTIONS, dice.randint(1, 3))
    if (wanted := _filter(dice, world)) is not None:
        asked["filter"] = wanted
    return asked


async def _ask(
    dice: random.Random, world: World, api: httpx.AsyncClient, cursors: list[tuple[Any, str]]
) -> tuple[str, str]:
    """One random request: what was asked, and all that came back."""
    kind = dice.random()
    if kind < 0.85:
        asked = _search(dice, world)
        response = await api.post("/v1/search", json=asked)
        assert response.status_code == 200, response.text
        if (cursor := response.json()["next_cursor"]) and dice.random() < 0.1:
            cursors.append((asked, cursor))
        told = str(asked), response.text + str(response.headers)
    elif kind < 0.9 and cursors:  # anybody's: a cursor is no key
        asked, cursor = dice.choice(cursors)
        response = await api.post("/v1/search", json={**asked, "cursor": cursor})
        assert response.status_code in {200, 422}
        told = str(asked), response.text
    elif kind < 0.97:
        id_ = dice.choice(world.ids)
        response = await api.get(f"/v1/documents/{id_}")
        assert response.status_code in {200, 404}
        told = id_, response.text
    elif kind < 0.99:
        response = await api.get("/v1/collections")
        told = "", response.text
    else:
        id_ = dice.choice(world.ids)
        if (await api.get(f"/v1/documents/{id_}")).status_code == 200:
            return id_, ""  # its own to delete or replace, which is not what is asked here
        deleted = await api.delete(f"/v1/documents/{id_}")
        assert deleted.json()["deleted"] is False
        told = id_, deleted.text
    return told


async def test_no_answer_holds_what_its_caller_may_not_see(world: World) -> None:
    dice = random.Random(1)
    callers = [Caller(scope, clearance) for scope in SCOPES for clearance in SENSITIVITIES]
    apis = {caller: world.api(caller) for caller in callers}
    cursors: list[tuple[Any, str]] = []
    seen = 0
    before = await world.service.count()
    for _ in range(REQUESTS):
        caller = dice.choice(callers)
        asked, told = await _ask(dice, world, apis[caller], cursors)
        assert world.leaked(told, asked, caller) == [], f"{caller} asked {asked}"
        seen += len(MARK.findall(told))
    assert seen > REQUESTS  # it is not that nothing was found
    assert await world.service.count() == before


async def test_no_document_is_replaced_by_who_may_not_see_it(world: World) -> None:
    taken = await world.service.documents.find(In("sensitivity", ("restricted",)), 100)
    for record in taken[::20]:
        caller = Caller(Scope(record.tenant, record.environment), "sensitive")
        line = msgspec.json.encode({"id": record.document.id, "text": "mine now"})
        response = await world.api(caller).post("/v1/documents", content=line)
        assert (response.json()["rejected"], response.json()["indexed"]) == (1, 0)
        assert world.leaked(response.text, record.document.id, caller) == []


class _Forgetful:
    """A source that finds everything there is, whatever it was told to leave out."""

    def __init__(self, source: str, world: World) -> None:
        self._source = source
        self._world = world

    async def search(self, query: Query) -> Ranking:
        held = await self._world.service.documents.fetch(query.scope, self._world.ids)
        dice = random.Random(query.text)
        ids = tuple(dice.sample(self._world.ids, len(self._world.ids)))  # those of other scopes, too
        known = {id_: told for id_ in ids if id_ in held and (told := facts(held[id_].document))}
        return Ranking(self._source, ids, tuple(1.0 / (n + 1) for n in range(len(ids))), facts=known)


async def test_a_source_that_forgets_its_filter_is_caught_by_the_second_lock(world: World) -> None:
    dice = random.Random(2)
    broken = {source: _Forgetful(source, world) for source in ("vector", "graph", "keyword")}
    engine = world.service.engine
    roads = Roads(broken, engine.priors, engine.roads.encoding, None, Breakers(5, 1.0, 20.0))
    broken_engine = replace(engine, roads=roads)
    answers = Answers(
        broken_engine, world.service.answers.kept, world.service.versions, world.service.settings, Admission(4, 100)
    )
    forgetful = World(replace(world.service, engine=broken_engine, answers=answers), world.owners, world.ids)
    withheld = 0
    for _ in range(FORGETFUL):
        caller = Caller(dice.choice(SCOPES), dice.choice(SENSITIVITIES[:-1]))
        asked = _search(dice, world) | {"explain": True, "cache": "bypass"}
        response = await forgetful.api(caller).post("/v1/search", json=asked)
        assert response.status_code == 200
        assert world.leaked(response.text, str(asked), caller) == []
        withheld += response.json()["explain"]["removed"]["withheld"]
    assert withheld > FORGETFUL
