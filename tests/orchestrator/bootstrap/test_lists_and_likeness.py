"""Lists, facets and documents like others: on servers as in this process."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters import Document, Link
from adapters.model.filter import Eq, Filter, Range
from orchestrator.bootstrap import open_service
from orchestrator.schema.search import Like, SearchResponse
from orchestrator.service.service import Service
from orchestrator.settings import Settings, load
from tests.orchestrator.bootstrap.helpers import index, search

pytestmark = [pytest.mark.anyio, pytest.mark.server]

TOPICS = {
    "bread": "flour yeast rises oven dough rye loaf crust salt water",
    "stars": "comet orbit dust tail sun planet gas light telescope sky",
    "boats": "sail wind harbour rope anchor deck wave mast captain keel",
    "law": "court judge appeal statute contract clause verdict witness oath bench",
}
FACETS = {"tags": 3, "language": 5, "created_at": 6, "importance": 4, "metadata.size": 5, "collection": 5}
ORDERS = (None, "created_at", "-created_at", "metadata.size", "-importance", "tags", "-metadata.missing")
FILTERS: tuple[Filter, ...] = (Eq("language", "en"), Range("metadata.size", gte=3), Eq("collection", "notes"))


def corpus() -> list[Document]:
    chosen = random.Random(5)

    def document(number: int) -> Document:
        topic, words = chosen.choice(list(TOPICS.items()))
        text = " ".join(chosen.sample(words.split(), 6))
        return Document(
            id=f"d{number:02}",
            text=f"About {topic}: {text}.",
            entities=(f"Name {number % 20}",),
            collection=chosen.choice(["notes", "mails"]),
            tags=(topic,),
            language=chosen.choice(["en", "de", None]),
            importance=chosen.choice([None, 1.0, 4.0, 9.5]),
            created_at=datetime(2015 + number % 9, 1 + number % 12, 2, tzinfo=UTC) if number % 5 else None,
            sensitivity=chosen.choice(["normal", "normal", "restricted"]),
            metadata={"size": number % 8},
            links=(Link(f"d{(number + 1) % 60:02}", "next"),) if number % 3 else (),
        )

    return [document(number) for number in range(60)]


async def responses(settings: Settings) -> tuple[list[SearchResponse], list[SearchResponse]]:
    """Those of lists and of facets, which are exact; and those of documents like others."""
    async with open_service(settings) as service:
        assert (await index(service, corpus())).pending == {}
        exact = [
            await complete(service, filter=condition, sort=order, facets=FACETS, limit=20)
            for condition in FILTERS
            for order in ORDERS
        ]
        exact += [await complete(service, "yeast and dust", mode="keyword", facets=FACETS)]
        visible = [each.id for each in corpus() if each.sensitivity == "normal"]
        alike = [
            await complete(service, like=Like((id_,)), mode=mode, facets=FACETS)
            for id_ in visible[:20]
            for mode in ("vector", "keyword", "hybrid")
        ]
    return exact, alike


async def complete(service: Service, query: str = "", **fields: object) -> SearchResponse:
    response = await search(service, query, timeout_ms=20_000, **fields)
    assert response.degraded == ()
    return response


def ids(response: SearchResponse) -> list[str]:
    return [hit.id for hit in response.hits]


async def test_servers_answer_as_the_embedded_engine_does(
    tmp_path: Path, model_dir: Path, server_url: Callable[[str], str]
) -> None:
    embedded = load(data_dir=tmp_path / "embedded", model_dir=model_dir, query_encoder="model", max_limit=20)
    on_servers = embedded.changed(
        data_dir=tmp_path / "servers",
        keyword=server_url("opensearch"),
        graph=server_url("bolt"),
        index_name=f"test-{uuid.uuid4().hex}",
        source_timeout_ms=20_000,
    )
    (exact, alike), (exact_on_servers, alike_on_servers) = await responses(embedded), await responses(on_servers)
    for one, other in zip(exact, exact_on_servers, strict=True):
        assert ids(one) == ids(other)
        assert (one.facets, one.total) == (other.facets, other.total)
        assert one.hits
    # `make bench-parity` compares the graph on real documents: of so few and so near ones, walks differ.
    pairs = [(one, other) for one, other in zip(alike, alike_on_servers, strict=True) if one.mode != "hybrid"]
    overlaps = [len(set(ids(one)[:10]) & set(ids(other)[:10])) / len(ids(one)[:10]) for one, other in pairs]
    assert sum(overlaps) / len(overlaps) >= 0.95
