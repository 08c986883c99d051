"""Nothing in a response depends on documents that its caller may not see: those above its clearance, and those of other
tenants.

Two services get the same documents that the caller may see, in the same writes; between them, the writes of one have
hidden documents, and those of the other have others. Responses are equal, byte for byte.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from adapters import SENSITIVITIES, Document, Link, Scope, Sensitivity
from adapters.model.protection import HIGHEST_CLEARANCE, is_visible
from orchestrator.auth.principal import Principal
from orchestrator.bootstrap import open_service
from orchestrator.indexing.ndjson import InvalidLine, ValidLine
from orchestrator.schema.search_input import search_request
from orchestrator.service.service import Service
from orchestrator.settings import Settings

pytestmark = pytest.mark.anyio

NAMES = ("Alpha Centauri", "Betelgeuse", "Cassiopeia", "Deneb", "Epsilon Eridani", "Fomalhaut")
WORDS = ("star", "planet", "orbit", "light", "dust", "probe", "signal", "comet")
MODES = ("auto", "hybrid", "vector", "graph", "keyword")
OWN, OTHER = Scope("own"), Scope("other")
VISIBLE, HIDDEN, QUERIES = 60, 24, 16
OF_THE_REQUEST = {"request_id", "query_id", "took_ms", "timings_ms"}


def document(dice: random.Random, id_: str, sensitivity: Sensitivity) -> Document:
    return Document(
        id=id_,
        title=dice.choice(NAMES) if dice.random() < 0.4 else f"On a {dice.choice(WORDS)}",
        text=f"{dice.choice(NAMES)} {' '.join(dice.choices(WORDS, k=dice.randrange(3, 20)))} {dice.choice(NAMES)}",
        sensitivity=sensitivity,
        importance=dice.choice([None, 1.0, 9.0]),
        tags=(dice.choice(WORDS),),
        collection=dice.choice(["documents", "documents", "notes"]),
        metadata={"size": dice.randrange(3), dice.choice(WORDS): True},
        links=tuple(
            Link(str(dice.randrange(VISIBLE + HIDDEN)), dice.choice(["about", "part_of"]))
            for _ in range(dice.randrange(4))
        ),
    )


def documents(dice: random.Random, numbers: Sequence[int], levels: Sequence[Sensitivity]) -> list[Document]:
    return [document(dice, str(number), dice.choice(levels)) for number in numbers]


async def write(service: Service, scope: Scope, written: Sequence[Document]) -> None:
    def refuse(line: InvalidLine) -> None:
        pytest.fail(line.error)

    writer = replace(service.anonymous, scope=scope, clearance=HIGHEST_CLEARANCE)
    lines = [ValidLine(number, each) for number, each in enumerate(written, start=1)]
    await service.documents.index(lines, writer, refuse)


@asynccontextmanager
async def opened(folder: Path, model_dir: Path) -> AsyncIterator[Service]:
    async with open_service(Settings.of(data_dir=folder, model_dir=model_dir, upkeep_interval_s=0)) as service:
        yield service


async def responses(service: Service, seed: int, clearance: Sensitivity) -> list[dict[str, bytes]]:
    dice = random.Random(seed)
    principal = Principal("reader", OWN, clearance)
    found = []
    for _ in range(QUERIES):
        request = {
            "query": f"{dice.choice(NAMES)} {' '.join(dice.choices(WORDS, k=3))}",
            "explain": True,
            "cache": "bypass",
            "timeout_ms": 60_000,
            "collections": dice.choice([["documents"], ["documents", "notes"]]),
            "boosts": dice.choice([{}, {"centrality": True, "importance": True, "relationship": True}]),
            "collapse": dice.choice(["parent", "window", "none"]),
        }
        if dice.random() < 0.5:
            request["filter"] = {"op": "exists", "field": f"metadata.{dice.choice(WORDS)}"}
        for mode in MODES:
            response = await service.search.search(search_request({**request, "mode": mode}), principal, "id")
            fields = msgspec.json.decode(msgspec.json.encode(response), type=dict[str, msgspec.Raw])
            found.append({name: bytes(raw) for name, raw in fields.items() if name not in OF_THE_REQUEST})
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 26))])
async def test_hidden_documents_change_no_byte_of_a_response(tmp_path: Path, model_dir: Path, seed: int) -> None:
    dice = random.Random(seed)
    clearance = SENSITIVITIES[1 + seed % 2]
    levels = [level for level in SENSITIVITIES if is_visible(level, clearance)]
    hidden_levels = [level for level in SENSITIVITIES if level not in levels]
    visible = documents(dice, range(VISIBLE), levels)
    hidden = documents(dice, range(VISIBLE, VISIBLE + HIDDEN), hidden_levels)
    others = documents(dice, range(VISIBLE + HIDDEN), SENSITIVITIES)
    halves = visible[: VISIBLE // 2], visible[VISIBLE // 2 :]
    worlds = {
        "hidden": [(OWN, halves[0]), (OWN, hidden[:9]), (OWN, halves[1]), (OWN, hidden[9:]), (OTHER, others[:9])],
        "other": [(OTHER, others[:30]), (OWN, halves[0]), (OTHER, others[30:]), (OWN, halves[1]), (OTHER, others[:3])],
    }
    found = []
    for name, writes in worlds.items():
        async with opened(tmp_path / name, model_dir) as service:
            for scope, written in writes:
                await write(service, scope, written)
            before = await responses(service, seed, clearance)
            await service.maintenance.optimize(lambda _: None)
            found.append([*before, *await responses(service, seed, clearance)])
    with_hidden, with_others = found
    assert len(with_hidden) == 2 * QUERIES * len(MODES)
    for one, other in zip(with_hidden, with_others, strict=True):
        assert [name for name, value in one.items() if other[name] != value] == []
    assert len({each["hits"] for each in with_hidden}) > QUERIES
