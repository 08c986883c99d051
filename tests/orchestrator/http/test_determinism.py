"""The same question gets the same answer: alone, among 64 others, from either worker, before and after a restart."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Mapping
from pathlib import Path

import anyio
import httpx
import msgspec
import pytest

from tests.orchestrator.served import Serve, environment

pytestmark = pytest.mark.anyio

_DOCUMENTS, _QUERIES, _AT_ONCE = 300, 200, 64
_OF_THE_REQUEST = {"request_id", "query_id", "took_ms", "timings_ms"}
_SUBJECTS = ("river", "engine", "painter", "island", "senate", "violin", "glacier", "harbour", "comet", "orchard")
_VERBS = ("crosses", "repairs", "portrays", "surrounds", "elects", "accompanies", "carves", "shelters", "follows")
_LOCATIONS = ("Norway", "Lisbon", "the old mill", "Mount Ararat", "Kyoto", "the northern coast", "Bergen", "a valley")


@pytest.fixture
def env(python: str, tmp_path: Path, model_dir: Path) -> dict[str, str]:
    """The settings of an index of two collections with enough documents for the static encoder."""
    env = environment(data_dir=tmp_path / "data", model_dir=model_dir, query_encoder="static")
    rng = random.Random(0)
    lines = [
        json.dumps({"id": f"d{number}", "text": sentences(rng, 3), "collection": ("documents", "notes")[number % 2]})
        for number in range(_DOCUMENTS)
    ]
    command = [python, "-m", "orchestrator", "index", "-"]
    subprocess.run(command, env=env, input="\n".join(lines).encode(), check=True, capture_output=True)
    return env


def sentences(rng: random.Random, count: int) -> str:
    return " ".join(
        f"The {rng.choice(_SUBJECTS)} {rng.choice(_VERBS)} the {rng.choice(_SUBJECTS)} near {rng.choice(_LOCATIONS)}."
        for _ in range(count)
    )


def bodies() -> list[bytes]:
    """Distinct requests without a cache, so that each response is computed."""
    rng = random.Random(1)
    queries: dict[str, None] = {}
    while len(queries) < _QUERIES:
        queries[f"which {rng.choice(_SUBJECTS)} {rng.choice(_VERBS)} what, and was {sentences(rng, 1)}"] = None
    return [
        json.dumps({"query": query, "mode": "hybrid", "cache": "bypass", "timeout_ms": 60_000}).encode()
        for query in queries
    ]


async def responses(address: str, at_once: int) -> list[Mapping[str, bytes]]:
    """The fields of each response as bytes, without those that belong to the request."""
    found: dict[int, Mapping[str, bytes]] = {}
    slots = anyio.CapacityLimiter(at_once)

    async def send(client: httpx.AsyncClient, number: int, body: bytes) -> None:
        async with slots:
            response = await client.post(f"{address}/v1/search", content=body)
        assert response.status_code == 200, response.text
        fields = msgspec.json.decode(response.content, type=dict[str, msgspec.Raw])
        found[number] = {name: bytes(raw) for name, raw in fields.items() if name not in _OF_THE_REQUEST}

    limits = httpx.Limits(max_connections=at_once)
    async with httpx.AsyncClient(timeout=60, limits=limits) as client, anyio.create_task_group() as tasks:
        for number, body in enumerate(bodies()):
            tasks.start_soon(send, client, number, body)
    return [found[number] for number in range(_QUERIES)]


@pytest.mark.parametrize("encoder", ["model", "static"])
async def test_load_workers_and_a_restart_change_no_response(serve: Serve, env: dict[str, str], encoder: str) -> None:
    env["TRIVIUM_QUERY_ENCODER"] = encoder
    with serve(env, "--workers", "2") as (_, address):
        alone = await responses(address, 1)
        assert await responses(address, _AT_ONCE) == alone
    with serve(env, "--workers", "2") as (_, address):
        assert await responses(address, _AT_ONCE) == alone
    assert {each["encoder"] for each in alone} == {f'"{encoder}"'.encode()}
    assert {each["degraded"] for each in alone} == {b"[]"}
    assert len({each["hits"] for each in alone}) > _QUERIES // 2
